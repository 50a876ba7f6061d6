"""Sections of handbooks that come as HTML or Mallard pages, and the queries that their headings make."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from reranker_sources.passages import passages_of, sentences_of, words_of
from reranker_sources.source import Collector, digest

TAGS = "script style nav header footer svg form credit table comment license legal"
CLASSES = """
sphinxsidebar related footer navheader navfooter headerlink menu nosearch fancy_toc toc toplang up top permalink
indexterm bottomlang mobile-nav inline-search searchmenu menu-wrapper nav-wrapper tagline nav-wide-wrapper
"""
SKIPPED_TAGS, SKIPPED_CLASSES = frozenset(TAGS.split()), frozenset(CLASSES.split())
SKIPPED_IDS = {"quickview", "path", "page-header", "footer", "comments_section", "menu-bar", "toc"}
HEADINGS = {"h1", "h2", "h3", "h4"}
BLOCKS = {"p", "li", "dd", "div", "ul", "ol", "item", "section", "blockquote", "br", "tr"}
VOID = {"br", "img", "hr", "meta", "link", "input", "col", "area", "base", "wbr", "source"}
CODE = 40  # words of an example that is kept; longer ones are left out
SHORTEST = 12  # words of a section that counts
NUMBER = re.compile(r"^(?:(?:Chapter|Appendix)\s+)?(?:\d+|[A-Z](?=\.))(?:\.\d+)*\.?\s+(?=\S)")
SITE = re.compile(r"\s+(?:[—|]|- Apache HTTP Server)\s*.*$")  # what a page's title says of the whole handbook
FOOTER = re.compile(r"This page (?:was )?last (?:modified|updated) on .*$")
IMPERATIVES = """
add adjust allow apply arrange avoid back browse burn calibrate change check choose clear click close configure
connect control convert copy create customize delete disable discover display do edit enable enter find fix force
get give hide import improve increase install keep launch learn limit link list lock log make manage merge mount
move open organize pause play preview prevent print protect put read recover remove rename reduce repair replace
require reset resize restore restrict run save scan scroll search see select send set share show sort speed start
stop switch take test transfer turn type uninstall unlock update upgrade use view wake work write
"""
VERBS = frozenset(IMPERATIVES.split())
GENERIC = frozenset(
    ("introduction", "overview", "example", "examples", "description", "notes", "see", "also", "summary", "usage")
)


@dataclass
class Section:
    """A heading, or a term that is defined, with the text under it.

    Args:
        kind: "heading" or "term".
        description: what the page says of itself in one sentence, if it does.
    """

    kind: str
    heading: str
    words: list[str] = field(default_factory=list)
    description: str = ""

    @property
    def text(self) -> str:
        joined = " ".join("".join(self.words).split())
        return FOOTER.sub("", re.sub(r"\s+([,.;:?!)])", r"\1", joined)).strip()


class SectionParser(HTMLParser):
    """Reads a page into sections."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.sections: list[Section] = [Section("heading", "")]
        self.title = ""
        self.skipped: list[str] = []
        self.held: list[str] | None = None  # text of a heading, a term, a description or an example that is being read
        self.lists = 0

    def handle_starttag(self, tag, attrs):
        if tag in VOID:
            self._text(" ")
            return
        given = dict(attrs)
        classes = set((given.get("class") or "").split())
        skip = tag in SKIPPED_TAGS or classes & SKIPPED_CLASSES or given.get("id") in SKIPPED_IDS
        if self.skipped:
            if tag == self.skipped[0]:
                self.skipped.append(tag)
        elif skip:
            self.skipped.append(tag)
        elif tag in HEADINGS or tag in {"title", "dt", "desc", "pre"}:
            self.held = []
        elif tag == "dl":
            self.lists += 1
        elif tag in BLOCKS:
            self._text(" ")

    def handle_endtag(self, tag):
        if self.skipped:
            if tag == self.skipped[-1]:
                self.skipped.pop()
            return
        if tag == "dl" and self.lists:
            self.lists -= 1
            if not self.lists:
                self.sections.append(Section("heading", ""))
        elif tag in BLOCKS:
            self._text(" ")
        elif self.held is not None and (tag in HEADINGS or tag in {"title", "dt", "desc", "pre"}):
            text, self.held = " ".join("".join(self.held).split()).strip("¶# "), None
            self._found(tag, text)

    def handle_data(self, data):
        if not self.skipped:
            self._text(data)

    def _text(self, text: str):
        (self.sections[-1].words if self.held is None else self.held).append(text)

    def _found(self, tag: str, text: str):
        if tag == "pre":
            if len(text.split()) <= CODE:
                self.sections[-1].words.append(f" {text} ")
        elif tag == "desc":
            self.sections[-1].description = text
        elif tag == "dt":
            self.sections.append(Section("term", text))
        elif tag == "title" and not self.title:
            self.title = SITE.sub("", text)
            self.sections.append(Section("heading", text, description=self.sections[-1].description))
        else:
            self.sections.append(Section("heading", NUMBER.sub("", text)))


def sections_of(page: str) -> tuple[str, list[Section]]:
    """Return a page's title and its sections that have some text."""
    parser = SectionParser()
    parser.feed(page)
    parser.close()
    return NUMBER.sub("", parser.title), [one for one in parser.sections if len(one.text.split()) >= SHORTEST]


def add_page(found: Collector, page: str, group: str, *, tasks: bool = False):
    """Add a page's passages, and the queries that its headings, terms and first sentences make.

    Args:
        tasks: headings are tasks in the imperative ("Connect to a network"), which some are asked for with "how do I".
    """
    title, sections = sections_of(page)
    for section in sections:
        texts = passages_of(section.text)
        if section.heading and digest(section.text) % 3 == 0:
            texts[0] = f"{section.heading}: {texts[0]}" if section.kind == "term" else f"{section.heading}. {texts[0]}"
        numbers = [found.passage(text, group) for text in texts]
        own = set(numbers)
        queries = list(_queries(section, title, tasks))
        for text in texts:
            query, rest = _sentence_apart(text)
            if query and digest(text) % 3 == 1:
                shorter = found.passage(rest, group)
                own.add(shorter)
                queries.append((query, "task" if section.kind == "term" else "sentence", shorter))
        for query, form, right in queries:
            found.ask(query, numbers[0] if right is None else right, form, also=frozenset(own))


def _queries(section: Section, title: str, tasks: bool):
    """Yield queries that a section's heading and description make: text, form, and None for the first passage."""
    heading = section.heading.strip()
    if section.kind == "term":
        name = re.split(r"[(\[=,]| in (?:class|module)", heading)[0].strip()
        if 3 <= len(name) <= 40 and len(name.split()) <= 4:
            forms = ("what is {}", "{}", "what does {} do?", "{} meaning")
            yield forms[digest(heading) % len(forms)].format(name), "definition", None
        return
    if not heading:
        return
    words = words_of(heading)
    if heading.endswith("?"):
        yield heading, "faq", None
    elif len(words) < 3 or set(words) <= GENERIC:
        if title and title.casefold() != heading.casefold():
            yield f"{title} {heading.lower()}", "title", None
    elif tasks and words[0] in VERBS and not set(words) & {"is", "was", "not", "does"}:
        start = ("how do I ", "how to ", "how can I ", "")[digest(heading) % 4]
        yield f"{start}{heading[0].lower() if start else heading[0]}{heading[1:]}", "task", None
    elif words[0] == "using":
        yield f"how to use {heading[6:]}", "task", None
    else:
        yield heading, "title", None
    if len(words_of(section.description)) >= 4:
        yield section.description, "sentence", None


def _sentence_apart(text: str) -> tuple[str, str]:
    """Return a sentence of a text, chosen by the text's hash, and the text without it; empty where none is fit."""
    sentences = sentences_of(text)
    fit = [place for place, one in enumerate(sentences) if 7 <= len(one.split()) <= 25 and one[-1] in ".!?"]
    if len(sentences) < 2 or not fit or len(text.split()) < 40:
        return "", ""
    place = fit[digest(text) % len(fit)]
    return sentences[place].rstrip("."), " ".join(sentences[:place] + sentences[place + 1 :])
