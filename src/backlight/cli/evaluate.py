"""`backlight evaluate`: measure the faithfulness of each method's explanations of a model on a data set."""

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from backlight.cli.arguments import add_model, options_of, positive, reranker_of, whole_number
from backlight.cli.main import INTERRUPTED, Parser, notice, version
from backlight.cli.outputs import as_json, write_file
from backlight.cli.screens.evaluation import progress, show
from backlight.cli.screens.quick_evaluation import live, markdown_of, show_quick
from backlight.cli.screens.terminal import screen
from backlight.errors import InputError
from backlight.explain.batch.files import suffix_of
from backlight.explain.batch.rows import BadRow
from backlight.explain.faithfulness.columns import markdown, tables_of
from backlight.explain.faithfulness.links import read_links
from backlight.explain.faithfulness.measure import ALWAYS, Plan, Variant, check_variants
from backlight.explain.faithfulness.questions import (
    ENDINGS,
    CutDocuments,
    Listed,
    Question,
    choose,
    cut_documents,
    read_questions,
    shuffled,
)
from backlight.explain.faithfulness.quick import (
    PAIRS,
    SECONDS,
    QuickCheck,
    QuickRow,
    cheap_variants,
    sample,
    verdict_of,
)
from backlight.explain.faithfulness.records import Records
from backlight.explain.faithfulness.saved_choice import SavedChoice, write_choice
from backlight.explain.faithfulness.study import TAUGHT, Study, pair_key
from backlight.explain.faithfulness.table import LinkRow, Row, link_rows_of, rows_of
from backlight.explain.methods.integrated_gradients import BASELINES
from backlight.explain.methods.registry import METHODS, method_called
from backlight.explain.presentation.wording import count_of
from backlight.models.checkpoint import BUILTIN, find_model, read_settings
from backlight.models.scorer import Scorer
from backlight.web.evaluation import page

SEVERAL = {"integrated-gradients": [{"baseline": name} for name in BASELINES]}  # what `all` means of a method
SCHEMA = 2  # of the data of --json: raised when a field changes its name or its meaning
FIGURES = ("signs", "query_signs", "top", "order")  # of a row of the quick check
PLANNED = ("pairs", "budget", "detailed", "seed")  # the plan's settings that the command line gives


def evaluate(argv: Sequence[str]) -> int:
    """Run `backlight evaluate` with these arguments."""
    given = _parser().parse_args(argv)
    if given.quick or given.save:
        return _evaluate_quickly(given)
    if given.data is None:
        raise InputError("evaluate needs data; only --quick has its own: backlight evaluate MODEL --quick")
    given.data, given.pairs = Path(given.data), given.pairs or Plan.pairs
    if given.html is not None and given.html.is_dir():
        raise InputError(f"--html must be a file, got the folder {given.html}")
    variants = variants_of(given.methods)
    plan = Plan(**{name: getattr(given, name) for name in PLANNED})
    ranker = reranker_of(given).scorer
    titles = held_out(given.model)
    listed = read_questions(given.data, titles=titles, left_out=report_skipped_rows)
    questions = choose(listed, ranker.rank_scores, plan.pairs + TAUGHT, plan.seed)
    links = shuffled(read_links(given.links), plan.seed) if given.links else []
    description = about(given.data, ranker, questions, plan, variants, titles)
    description |= {"linked": given.links and given.links.name}
    cut = cut_documents(ranker, [(one.text, text) for one in questions for text in (one.document, *one.rivals)])
    report_truncation(cut)
    records = Records(given.records or Path(f"{given.data.stem}.faithfulness.jsonl"), description, resume=given.resume)
    study = Study(ranker, questions, variants, plan, records, links)
    with contextlib.closing(records):
        stopped = not _run(study)
    _write_results(given, study, description, cut)
    return INTERRUPTED if stopped else 0


def _evaluate_quickly(given: argparse.Namespace) -> int:
    for name in ("html", "links", "records", "resume"):
        if getattr(given, name):
            raise InputError(f"--{name} cannot be combined with --quick or --save")
    data, model = data_and_model(given.data, given.model)
    given.model = model
    listed = sample() if data is None else read_questions(data, titles=held_out(model), left_out=report_skipped_rows)
    variants = None if given.methods == "all" else variants_of(given.methods)
    return _check_quickly(given, "backlight's sample" if data is None else data.name, listed, variants)


def data_and_model(place: str | None, model: str) -> tuple[Path | None, str]:
    """Return the data, if any was given, and the model, which may stand where data does.

    Raises:
        InputError: two models were given.
    """
    if place is None:
        return None, model
    path = Path(place)
    folder = path.is_dir() and not (path / "config.json").is_file()
    if folder or path.is_file() or suffix_of(path) in ENDINGS:
        return path, model
    if model not in (BUILTIN, place):
        raise InputError(f"evaluate must be given one model, got {place} and --model {model}")
    return None, place


def _run(study: Study) -> bool:
    """Measure, and tell whether all was: Ctrl-C shows what was measured until then."""
    try:
        with progress(sys.stderr) as advance:
            study.run(advance)
    except KeyboardInterrupt:
        if pair_key(0) not in study.records:
            raise
        print("Stopped: the tables show what was measured so far; --resume continues.", file=sys.stderr)
        return False
    return True


def _parser() -> Parser:
    parser = Parser(
        prog="backlight evaluate",
        description="Measure how faithful each method's explanations of a model are: how the scores change when the "
        "words that it ranks highest are removed.",
    )
    parser.add_argument(
        "data",
        nargs="?",
        metavar="data",
        help="pairs or lists as .jsonl, .csv, .tsv or .parquet, data in SQuAD's format, or a folder with one such "
        "file; optional with --quick, which also accepts a model here",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="find the cheap method that suits the model best, in less than two minutes; without data, on a sample "
        "that comes with backlight",
    )
    parser.add_argument("--save", action="store_true", help="run --quick, and save its choice in the model's folder")
    parser.add_argument("--seconds", type=positive, help=f"how long --quick measures (default {SECONDS:.0f})")
    add_model(parser)
    parser.add_argument(
        "--methods", default="all", help="all, or names separated by commas, each optionally followed by :option=value"
    )
    parser.add_argument(
        "--pairs", type=positive, help=f"pairs to measure on (default {Plan.pairs}, with --quick {PAIRS})"
    )
    parser.add_argument(
        "--budget",
        type=positive,
        default=Plan.budget,
        help=f"passes through the model for each method (default {Plan.budget}); a costly one explains fewer pairs",
    )
    parser.add_argument(
        "--detailed-pairs",
        dest="detailed",
        type=positive,
        default=Plan.detailed,
        metavar="N",
        help=f"pairs for the more expensive measures (default {Plan.detailed})",
    )
    parser.add_argument("--close", dest="detailed", type=positive, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--links", type=Path, metavar="FILE", help="also compare interactions with the links of a file in QED's format"
    )
    parser.add_argument("--seed", type=whole_number, default=Plan.seed, help="seed of all sampling (default 0)")
    parser.add_argument("--records", type=Path, metavar="FILE", help="the file to save results in as they are measured")
    parser.add_argument("--resume", action="store_true", help="resume from the saved results")
    parser.add_argument("--json", action="store_true", help="print only JSON (fields: docs/faithfulness.md)")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a self-contained page")
    parser.add_argument("--theme", choices=("dark", "light"), help=argparse.SUPPRESS)
    return parser


def variants_of(said: str) -> list[Variant]:
    """Return the requested methods, and those that are in every table.

    >>> [variant.label for variant in variants_of("saliency,smoothgrad:samples=8")]
    ['saliency', 'smoothgrad:samples=8', 'random', 'embedding-magnitude']

    Raises:
        InputError: there is no such method or option, or one is named twice.
    """
    if said == "all":
        names = [name for name in METHODS if name not in ALWAYS]
        found = [Variant(METHODS[name], options) for name in names for options in SEVERAL.get(name, [{}])]
    else:
        found = [_variant(one.strip()) for one in said.split(",") if one.strip()]
    found += [Variant(METHODS[name]) for name in ALWAYS if name not in {one.label for one in found}]
    check_variants(found)
    return found


def _variant(said: str) -> Variant:
    name, *options = said.split(":")
    method = method_called(name)
    return Variant(method, options_of(method, options))


def held_out(model: str) -> list[str] | None:
    """Return the articles that a model did not learn from, where its folder says so."""
    titles = read_settings(find_model(model) / "held_out.json").get("articles")
    return None if titles is None else list(titles)


def about(
    data: Path, ranker: Scorer, questions: Sequence[Question], plan: Plan, variants: Sequence[Variant], titles
) -> dict:
    """Return what is measured on what: results are only put together with results of the same."""
    texts = json.dumps([dataclasses.astuple(one) for one in questions], ensure_ascii=False)
    return {
        "data": data.name,
        "questions": hashlib.sha256(texts.encode()).hexdigest()[:16],
        "held_out": titles,
        "model": ranker.name,
        "score": round(float(ranker.rank_scores(questions[0].text, [questions[0].document])[0]), 3),
        "plan": dataclasses.asdict(plan),
        "methods": [variant.label for variant in variants],
    }


def report_skipped_rows(bad: Sequence[BadRow]) -> None:
    """Say on standard error how many rows of the data cannot be used, and why the first cannot."""
    notice(f"{count_of(len(bad), 'row')} could not be used; the first, line {bad[0].line}: {bad[0].reason}")


def report_truncation(cut: CutDocuments) -> None:
    """Say on standard error how many documents the model does not read to their end."""
    if cut.cut:
        notice(
            f"{cut.cut:,} of {count_of(cut.documents, 'document')} {'is' if cut.cut == 1 else 'are'} cut at the "
            f"{cut.max_tokens} tokens that the model reads (up to {cut.most_left_out:,} tokens left out): evaluate "
            "uses no windows"
        )


def _write_results(given: argparse.Namespace, study: Study, description: dict, cut: CutDocuments) -> None:
    """Write the page, and print the tables in the requested format."""
    rows, links = rows_of(study), link_rows_of(study)
    if given.html is not None:
        write_file(given.html, page(rows, links, description, version()).encode())
    if given.json:
        print(as_json(_data(rows, links, description, cut)))
    elif given.markdown:
        print(markdown(rows, links))
    else:
        show(rows, links, description, screen(given.theme).console)
    if given.html is not None:
        print(f"The page is in {given.html}", file=sys.stderr if given.json or given.markdown else sys.stdout)


def _data(rows: Sequence[Row], links: Sequence[LinkRow], description: dict, cut: CutDocuments) -> dict:
    """Return the tables as data (docs/faithfulness.md describes it), with the measures that these pairs allow."""
    measures = {column.name: column.meaning for _, columns, _ in tables_of(rows, links) for column in columns}
    tables = {name: [dataclasses.asdict(row) for row in some] for name, some in (("rows", rows), ("links", links))}
    return {"schema": SCHEMA, **description, "cut": dataclasses.asdict(cut), "measures": measures, **tables}


def _check_quickly(
    given: argparse.Namespace, data: str, listed: Sequence[Listed], variants: Sequence[Variant] | None
) -> int:
    """Measure methods of few passes on a model, and print the table and what follows from it.

    Args:
        given: the arguments of `backlight evaluate`.
        data: what the questions are called.
        variants: the methods; those of few passes by default.
    """
    ranker = reranker_of(given).scorer
    questions = shuffled(listed, given.seed)[: given.pairs or PAIRS]
    cut = cut_documents(ranker, [(one.query, text) for one in questions for text in one.candidates])
    report_truncation(cut)
    variants = cheap_variants(ranker, questions) if variants is None else variants
    check = QuickCheck(ranker, questions, variants, given.seconds or SECONDS, given.seed)
    stopped = not _run_check(check)
    about = f"{ranker.name} on {count_of(len(check.found), 'pair')} of {data}"
    if given.json:
        print(as_json(_quick_data(check, ranker.name, data, cut)))
    elif given.markdown:
        print(markdown_of(check))
    else:
        show_quick(check, about, screen(given.theme).console)
    if given.save:
        _save(given, check, data)
    return INTERRUPTED if stopped else 0


def _run_check(check: QuickCheck) -> bool:
    """Measure, and tell whether all was: Ctrl-C shows what was measured until then."""
    try:
        with live(check, sys.stderr) as tell:
            check.run(tell)
    except KeyboardInterrupt:
        if not check.found:
            raise
        done = f"{len(check.found)} of {count_of(len(check.questions), 'pair')}"
        print(f"Stopped after {done}: the table is of these.", file=sys.stderr)
        return False
    return True


def _save(given: argparse.Namespace, check: QuickCheck, data: str) -> None:
    """Keep the best method with the model.

    Raises:
        InputError: nothing or too little could be measured, or the folder cannot be written.
    """
    verdict = verdict_of(check.rows())
    if verdict is None:
        raise InputError("--save needs a method to save, and none could be measured on these pairs")
    if not verdict.enough:
        raise InputError(f"--save needs a choice to save, and there are {verdict.text}")
    row = verdict.estimate
    measured = _figures(row) | {
        "believable": verdict.believable,
        "data": data,
        "date": datetime.date.today().isoformat(),
        "version": version(),
    }
    choice = SavedChoice(row.variant.method.name, dict(row.variant.options), measured)
    file = write_choice(find_model(given.model), choice)
    print(f"The choice is saved in {file}", file=sys.stderr)


def _figures(row: QuickRow) -> dict:
    """Return a row's figures as plain numbers; null where there is none."""
    found = {name: mean and round(mean.value, 4) for name in FIGURES for mean in [getattr(row, name)]}
    return found | {"passes": row.passes, "seconds": round(row.seconds, 4), "pairs": row.pairs}


def _quick_data(check: QuickCheck, model: str, data: str, cut: CutDocuments) -> dict:
    """Return the table and the verdict as data (docs/faithfulness.md describes it)."""
    verdict, rows = verdict_of(check.rows()), []
    for row in check.rows():
        means = {name: mean and dataclasses.asdict(mean) for name in FIGURES for mean in [getattr(row, name)]}
        cost = {"passes": row.passes, "seconds": row.seconds, "pairs": row.pairs, "failed": row.failed}
        rows.append({"method": row.variant.method.name, "options": dict(row.variant.options), **means, **cost})
    said = verdict and {
        "estimate": verdict.estimate.label,
        "signs": verdict.signs.label,
        "believable": verdict.believable,
        "enough": verdict.enough,
        "text": verdict.text,
    }
    about = {"model": model, "data": data, "pairs": len(check.found), "cut": dataclasses.asdict(cut)}
    return {**about, "rows": rows, "verdict": said}
