"""Every kind of page has a policy that names its own script and style, and runs nothing of what it shows."""

import base64
import datetime
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Browser
from tiny_bert import cross_encoder

import backlight
from backlight.explain.batch import Settings, run_batch
from backlight.explain.faithfulness.table import Row
from backlight.explain.methods.attention_links import attention_links
from backlight.explain.methods.interactions import Interactions
from backlight.explain.methods.logit_lens import build_up
from backlight.explain.ranking import rank_and_explain
from backlight.explain.reranker import Reranker
from backlight.lens.differences.diff import diff
from backlight.lens.flow.flow_page import flow_page
from backlight.lens.flow.history import History
from backlight.lens.records.nodes import Edge, Node, Place, Summary
from backlight.lens.records.record import Record
from backlight.report.intervals import Mean
from backlight.training.report import report as run_report
from backlight.training.run_folder import RunFolder
from backlight.web.batch import batch_page
from backlight.web.evaluation import page as evaluation_page
from backlight.web.page_data import PageData
from backlight.web.report import report
from backlight.web.svg_to_png import PAGE

HOSTILE = (
    '</script></style><script>window.broken = 1</script><img src=x onerror="window.broken = 2">'
    '<a href=\'javascript:window.broken=3\'>" onmouseover="window.broken=4" '
    "<iframe src=http://127.0.0.1:9/> ${1} {{ 2 }}"
)
QUERY, DOCUMENTS = f"plants {HOSTILE}", [f"make food {HOSTILE}", f"a leaf {HOSTILE}"]
ROOT = Path(backlight.__file__).parent
NAMES = [f"{HOSTILE}.txt", f"b{HOSTILE}"]
WHEN = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def _ranking(method="saliency"):
    return rank_and_explain(cross_encoder(), QUERY, DOCUMENTS, NAMES, method=method)


def explain_page(folder) -> str:
    ranker, ranking = cross_encoder(), _ranking()
    best = ranking.documents[0]
    (pair,) = ranker.read([(QUERY, best.text)])
    return report(
        PageData(
            [ranking],
            attention={best.index: attention_links(ranker, pair)},
            layers={best.index: build_up(ranker, [pair])[0].after},
        ),
        HOSTILE,
        WHEN,
    )


def rank_page(folder) -> str:
    return report(PageData([rank_and_explain(cross_encoder(), QUERY, DOCUMENTS, NAMES, top=0)]), HOSTILE, WHEN)


def matrix_page(folder) -> str:
    ranking = _ranking()
    best = ranking.documents[0]
    asked, told = best.attribution.query.words, best.attribution.document.words
    values = tuple(tuple((row - column) / 9 for column in range(len(told))) for row in range(len(asked)))
    texts = best.attribution.query.text, best.attribution.document.text
    made = Interactions("joint-occlusion", HOSTILE, HOSTILE, best.score, *texts, asked, told, values)
    return report(PageData([ranking], matrices={best.index: [made]}), "1", WHEN)


def compare_page(folder) -> str:
    found = Reranker(cross_encoder()).compare(QUERY, *DOCUMENTS, names=tuple(NAMES))
    return report(PageData(comparisons=[found]), "1", WHEN)


def batch_of_pairs(folder) -> str:
    rows = [{"id": HOSTILE, "query": QUERY, "document": text, "label": 1.0} for text in DOCUMENTS]
    run_batch([*rows, {"query": HOSTILE}], folder / "batch", cross_encoder(), Settings(method="saliency"))
    return batch_page(folder / "batch", HOSTILE)


def evaluated(folder) -> str:
    means = {"comprehensiveness": Mean(0.5, 0.4, 0.6, 3), "deletion_area": Mean(0.5, 0.4, 0.6, 3)}
    row = Row(HOSTILE, HOSTILE, True, 3, 1, means, None, tuple(number / 10 for number in range(11)))
    told = {"model": HOSTILE, "data": HOSTILE, "held_out": [HOSTILE]}
    return evaluation_page([row], [], told, HOSTILE, WHEN)


def run_page(folder) -> str:
    place = RunFolder(folder / "run <b>")
    place.make()
    place.write_config({"model": HOSTILE, "optimizer": HOSTILE, "layers": {HOSTILE: HOSTILE}, "schedule": HOSTILE})
    for step in range(1, 5):
        norms = {HOSTILE: 0.1 * step, "dead": 0.0}
        told = {"step": step, "seconds": step / 2, "loss": 1 / step, "lr": 0.1 / step, HOSTILE: 0.5}
        place.append(told | {"gradient": 1.0, "gradient_norms": norms})
        place.append({"step": step, "seconds": 1.0, "epoch": step, "on": HOSTILE, "evaluation": {"accuracy": 0.5}})
    return run_report(place, WHEN)


def flow(folder) -> str:
    about = {"engine": HOSTILE, "title": HOSTILE, "model": HOSTILE, "parameters": 3, "layers": {HOSTILE: HOSTILE}}
    found = History(about | {"optimizers": [HOSTILE]})
    for step in range(1, 9):
        told = {"step": step, "seconds": step / 10, "loss": 2.0 / step, "lr": [0.01], "metrics": {HOSTILE: 0.5}}
        found.append(told | {"gradient": 1.0, "gradient_norms": {HOSTILE: 0.1 * step}})
    return flow_page(found, WHEN)


def hostile_record(name: str = HOSTILE) -> Record:
    place = Place(HOSTILE, 3, HOSTILE, HOSTILE)
    number = Summary((), "float32", 2.0, 2.0, 2.0, 2.0, 0, 0, 0, 2.0)
    leaf = Node(0, "leaf", "AccumulateGrad", HOSTILE, name, outputs=[number], place=place)
    op = Node(1, "op", HOSTILE, HOSTILE, HOSTILE, edges=[Edge(0, 0, HOSTILE, HOSTILE)], outputs=[number], place=place)
    op.module, op.module_type, op.hooks, op.root = HOSTILE, HOSTILE, [HOSTILE], True
    return Record("backlight", [leaf, op], title=HOSTILE, modules={HOSTILE: HOSTILE}, versions={HOSTILE: HOSTILE})


def graph_page(folder) -> str:
    return hostile_record().html()


def replay_page(folder) -> str:
    return hostile_record().html(replay=True)


def diff_page(folder) -> str:
    return diff(hostile_record(), hostile_record("other")).html()


KINDS = {
    "explain": explain_page,
    "rank": rank_page,
    "matrix": matrix_page,
    "compare": compare_page,
    "batch": batch_of_pairs,
    "evaluate": evaluated,
    "training": run_page,
    "flow": flow,
    "graph": graph_page,
    "replay": replay_page,
    "diff": diff_page,
}


class Parts(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, source: str):
        super().__init__()
        self.tags, self.texts, self.within = [], {"script": [], "style": []}, None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.within = tag if tag in self.texts and dict(attrs).get("type") != "application/json" else None
        if self.within:
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        if self.within:
            self.texts[self.within][-1] += data


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in KINDS.items()}


def hash_of(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_a_policy_that_names_its_script_and_style_and_nothing_else(sources, kind):
    parts = Parts(sources[kind])
    policies = [one["content"] for tag, one in parts.tags if tag == "meta" and "http-equiv" in one]
    assert len(policies) == 1
    rules = dict(rule.split(" ", 1) for rule in policies[0].split("; "))
    allowed = {"default-src", "base-uri", "form-action", "script-src", "style-src", "style-src-attr"}
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'" and set(rules) <= allowed
    assert rules.get("script-src", "").split() == [hash_of(text) for text in parts.texts["script"]]
    assert set(map(hash_of, parts.texts["style"])) <= set(rules["style-src"].split())
    assert "unsafe" not in policies[0].replace("style-src-attr 'unsafe-inline'", "")
    assert ("style-src-attr" in rules) or not any("style" in one for _, one in parts.tags)
    assert parts.tags.index(("meta", {"http-equiv": "Content-Security-Policy", "content": policies[0]})) < min(
        number for number, (tag, _) in enumerate(parts.tags) if tag in ("style", "script")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_page_shows_makes_no_element_and_no_attribute(sources, kind):
    for tag, attributes in Parts(sources[kind]).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "link", "a")
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "srcdoc")]


def test_the_page_that_a_picture_is_photographed_on_runs_and_loads_nothing():
    assert "default-src 'none'" in PAGE and "script-src" not in PAGE


def test_every_template_of_a_page_has_a_policy():
    made = [
        one
        for one in [*ROOT.rglob("*.html"), *ROOT.rglob("*.jinja")]
        if "doctype" in one.read_text(encoding="utf-8").lower()
    ]
    assert len(made) == 5
    for file in made:
        assert re.search(r"<head>\s*<meta charset=\"utf-8\">\s*(\$policy|\{\{ policy\|safe \}\})", file.read_text())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_runs_the_page_and_nothing_that_it_shows(sources, kind, browser, tmp_path):
    (tmp_path / "page.html").write_text(sources[kind], encoding="utf-8")
    browser.open(tmp_path / "page.html")
    browser.run("document.querySelectorAll('button, summary').forEach((one) => one.click())")
    assert browser.run("window.broken") is None
    assert browser.problems() == []
    assert [address for address in browser.requests() if not address.startswith("file:")] == []
    assert browser.run("document.body.innerText.length") > 100


def test_a_script_that_gets_into_a_page_does_not_run(sources, browser, tmp_path):
    evil = "<script>window.broken = 5</script><img src=x onerror='window.broken = 6'></body>"
    (tmp_path / "page.html").write_text(sources["explain"].replace("</body>", evil), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.run("window.broken") is None
    assert any("Content Security Policy" in problem for problem in browser.problems())
