"""`backlight what-if`: how a document's score changes when it is edited, in the terminal or as JSON."""

import argparse
from collections.abc import Sequence

from backlight.cli.arguments import add_model, add_windows, reading_of, reranker_of
from backlight.cli.documents import check_query, check_unicode, read_documents
from backlight.cli.main import Parser
from backlight.cli.outputs import as_json
from backlight.cli.pages import report_language, report_spelling, report_truncation, report_windows
from backlight.cli.screens.pairs import show_what_if
from backlight.cli.screens.terminal import progress, screen
from backlight.errors import InputError
from backlight.explain.edits import Add, Edit, Remove, Replace


def what_if(argv: Sequence[str]) -> int:
    """Run `backlight what-if` with these arguments."""
    given = _parser().parse_args(argv)
    check_query(given.query)
    if not given.edits:
        raise InputError("what-if must get an edit: --remove WORDS, --replace OLD=NEW or --add SENTENCE")
    documents = read_documents([given.document])
    if len(documents) != 1:
        raise InputError(f"what-if must get one document, got {len(documents)}: name a file or give a text")
    against = [text for _, text in read_documents(given.against, [])]
    rivals = [text for text in against if text != documents[0][1]]  # it does not compete with what it was
    with progress(None, "scoring"):
        reranker = reranker_of(given)
        found = reranker.what_if(given.query, documents[0][1], given.edits, candidates=rivals, **reading_of(given))
    report_language(reranker.name, reranker.other_languages(given.query, documents))
    report_spelling([version.read_as for version in found.versions])
    name, before = documents[0][0], found.before
    report_windows([(name, before.window)])
    report_truncation([(name, before.truncation, before.window)])
    if given.json:
        print(as_json(found))
    else:
        show_what_if(found, documents[0][0], screen(given.theme))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight what-if",
        description="Show how a document's score changes when it is edited. Edits are applied in the order given.",
    )
    parser.add_argument("query", help="the search query")
    parser.add_argument(
        "document", metavar="FILE_OR_TEXT", help="a text file, the text itself, or - for standard input"
    )
    edit = {"action": AppendEdit, "dest": "edits", "default": []}
    parser.add_argument("--remove", metavar="WORDS", help="remove words, wherever they occur", **edit)
    parser.add_argument("--replace", metavar="OLD=NEW", help="replace words, wherever they occur", **edit)
    parser.add_argument("--add", metavar="SENTENCE", help="add a sentence at the end", **edit)
    parser.add_argument("--add-start", metavar="SENTENCE", help="add a sentence at the start", **edit)
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE_OR_TEXT",
        help="other documents to rank the edited one among: a file, a folder or a text; may be repeated",
    )
    add_model(parser)
    add_windows(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON (fields: docs/explain.md)")
    parser.add_argument(
        "--theme", choices=("dark", "light"), help="the terminal's background (default: from COLORFGBG, else dark)"
    )
    return parser


class AppendEdit(argparse.Action):
    """Append an edit to those given before it: edits are made in the order of the command line."""

    def __call__(self, parser, namespace, values: str, option_string: str | None = None) -> None:
        """Append the edit that an option and its value name."""
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), _edit(option_string or "", values)])


def _edit(option: str, value: str) -> Edit:
    check_unicode(value, option)
    if not value.strip():
        raise InputError(f"{option} must not be empty")
    if option == "--replace":
        old, equals, new = value.partition("=")
        if not equals or not old.strip():
            raise InputError(f"--replace must be OLD=NEW, got {value}")
        return Replace(old.strip(), new.strip())
    return {"--remove": Remove, "--add": Add, "--add-start": lambda text: Add(text, "start")}[option](value.strip())
