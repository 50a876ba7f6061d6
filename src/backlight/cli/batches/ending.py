"""The end of a batch: its page, notices about damaged files and bad rows, and the summary as text or JSON."""

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from backlight.cli.main import notice, version
from backlight.cli.outputs import json_of
from backlight.explain.batch.checksums import Repair
from backlight.explain.batch.excerpts import SIDES
from backlight.explain.batch.files import write_file
from backlight.explain.batch.job import REPORT
from backlight.explain.batch.running import Batch
from backlight.explain.batch.words import matters
from backlight.explain.presentation.wording import count_of, figure
from backlight.report.text import harmless, number
from backlight.web.batch import batch_page

NAMED_LANGUAGES = 5  # listed in the notice at the end
NAMED = 20  # damaged files that are named on standard error; --json names all


def end(found: Batch, given: Namespace) -> None:
    """Write the page of a batch, and print what was found."""
    write_file(found.folder / REPORT, batch_page(found.folder, version()).encode())
    if found.bad:
        notice(f"{found.bad:,} of {found.rows:,} rows could not be used; see {found.bad_rows}")
    for line in remarks(found.summary):
        notice(line)
    if given.json:
        print(json_of(_as_data(found)))
    elif not given.quiet:
        print(*map(harmless, as_text(found).split("\n")), sep="\n")


class Notices:
    """Names damaged files of a job, the first of them, on standard error."""

    def __init__(self, folder: Path):
        self.folder, self.said = folder, 0

    def say(self, repair: Repair) -> None:
        """Name a file."""
        self.said += 1
        if self.said <= NAMED:
            notice(f"{self.folder / repair.file} {repair.damage}: {repair.repair}")
        elif self.said == NAMED + 1:
            notice("more files were damaged; --json names all of them at the end")


def _as_data(found: Batch) -> dict:
    counts = {name: getattr(found, name) for name in ("rows", "bad", "resumed")}
    repairs = [asdict(repair) for repair in found.repairs]
    places = {"out": str(found.folder), "page": str(found.folder / REPORT)}
    return {**places, **counts, "repairs": repairs, "summary": found.summary}


def remarks(summary: dict) -> list[str]:
    """Return what a batch has to say of its rows beside their scores: other languages, windows that were not scored."""
    lines, job = [], summary["job"]
    languages = summary["languages"]
    if languages and languages["rows"]:
        said = [
            f"{side}: {', '.join(f'{language} {count:,}' for language, count in list(found.items())[:NAMED_LANGUAGES])}"
            for side in SIDES
            if (found := languages[side])
        ]
        looks = "row looks" if languages["rows"] == 1 else "rows look"
        model = job["model"]["name"]
        lines.append(
            f"{languages['rows']:,} {looks} to be in another language ({'; '.join(said)}); {model} reads English only"
        )
    if many := summary["windows"]["preselected"]:
        most = job["settings"]["max_windows"]
        lines.append(
            f"of {count_of(many, 'long document')} only {most} windows were scored (windows_read in the rows); "
            "--max-windows 0 scores all"
        )
    return lines


def as_text(found: Batch) -> str:
    """Return what was found, in a few lines."""
    summary = found.summary
    score, labels, queries = summary["score"], summary["labels"], summary["queries"]
    lines = [
        count_of(score["count"], "pair") + (f" ({count_of(found.resumed, 'row')} done before)" if found.resumed else "")
    ]
    spread = score["quantiles"]
    unit = summary["job"]["model"]["score_name"]
    lines.append(
        f"{unit}: mean {_score(score['mean'])}, half of them between {_score(spread['25 %'])} and "
        f"{_score(spread['75 %'])}, from {_score(score['lowest'])} to {_score(score['highest'])}"
    )
    if labels:
        auc = "" if labels["roc_auc"] is None else f", ROC-AUC {labels['roc_auc']:.3f}"
        lines.append(f"labels: {labels['relevant']:,} of {labels['labelled']:,} relevant{auc}")
    if queries:
        lines.append(
            f"ranking: nDCG@10 {queries['ndcg@10']:.3f}, MRR@10 {queries['mrr@10']:.3f}, "
            + count_of(queries["queries"], "query", "queries")
        )
    if check := summary["check"]:
        lines.append(
            f"explanations checked: {check['rows']:,}, of which {check['holds']:,} hold, {check['fails']:,} fail; the "
            f"{unit} {_moved(check['drop'], check['random'])} without the 5 strongest words, "
            f"{_moved(check['random'], check['drop'])} without others"
        )
    for side, words in summary["words"].items():
        named = [word["word"] for word in words if matters(word)][:10]
        if named:
            lines.append(f"{side} words that mattered most (z of log-odds): {', '.join(named)}")
    lines.append(f"The page is in {found.folder / REPORT}")
    return "\n".join(lines)


def _score(score: float) -> str:
    return number(score, ".3f")


def _moved(drop: float, beside: float) -> str:
    """Say how far the score falls, or rises where the drop is negative."""
    return f"{'falls' if drop >= 0 else 'rises'} by {figure(abs(drop), beside=(abs(beside),))}"
