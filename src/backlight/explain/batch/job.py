"""The folder of a batch: what lies where, and what tells that a job is the one that was begun in it.

NOTE [A batch's folder]
    job.json                what decides every byte of the output: input, model, settings, versions
    parts/part-00000.*      the rows of a chunk of the input; a chunk is done when its part is there
    bad/part-00000.jsonl    the bad rows of the same chunk, if it has any; written before its part
    bad_rows.jsonl          all bad rows, when all chunks are done
    summary.json, words.*   what was found in all of them
    sample.jsonl            the rows that the page shows
    report.html             the page (`backlight batch` writes it)
    standard_input.jsonl    what came from standard input
    texts.sqlite            the texts of a collection
Files are written beside their place and renamed into it, so a file that is there is whole. A job that was killed goes
on behind its last part: the next chunk is read again from its first row. Nothing in the output depends on when it was
written, so it is the same, byte for byte, however often the job was killed.
"""

import importlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from backlight.adapters.parquet import writer_version
from backlight.errors import InputError
from backlight.explain.batch.files import Fingerprint
from backlight.explain.batch.opening import SPOOLED, Source
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.texts import FILE as TEXTS
from backlight.models.pairs import PairBatch
from backlight.training.run_folder import write_whole

JOB, SUMMARY, SAMPLE, REPORT, BAD_ROWS = "job.json", "summary.json", "sample.jsonl", "report.html", "bad_rows.jsonl"
PARTS, BAD = "parts", "bad"
WORDS = ("words.parquet", "words.jsonl")
OWN_FILES = (JOB, SUMMARY, SAMPLE, REPORT, BAD_ROWS, *WORDS, TEXTS)
PROBES = (
    ("what do green plants need", "Plants need light, water and air."),
    ("when did the train leave", "It had left at noon."),
    ("a", "of 1984"),
)
SAME_MODEL = 1e-4  # how far a probe's score may differ between machines, as a part of it or of 1


def check_folder(folder: Path) -> None:
    """Raise if a folder holds something that is no batch's.

    Raises:
        InputError: it does, or it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o must be a folder, got the file {folder}")
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    others = {name for name in names if not name.startswith(".")} - {SPOOLED, TEXTS}
    if others and JOB not in names:
        raise InputError(
            f"{folder} must be a new or empty folder or a batch's, and holds {', '.join(sorted(others)[:5])}"
        )


def clear(folder: Path) -> None:
    """Remove what a batch wrote into a folder, and nothing else; what came from standard input stays."""
    for name in OWN_FILES:
        (folder / name).unlink(missing_ok=True)
    for name in (PARTS, BAD):
        shutil.rmtree(folder / name, ignore_errors=True)


def drop_cut_short(folder: Path) -> None:
    """Remove what processes that were killed had begun to write."""
    begun = [left for name in OWN_FILES for left in folder.glob(f".{name}*")]
    for left in [*begun, *(folder / PARTS).glob(".part-*"), *(folder / BAD).glob(".part-*")]:
        left.unlink(missing_ok=True)


def describe(source: Source, fingerprints: Sequence[Fingerprint], ranker, settings: Settings) -> dict:
    """Return a job as job.json has it."""
    files = [{"name": file.name, **asdict(found)} for file, found in zip(source.files, fingerprints, strict=True)]
    return {
        "backlight": importlib.import_module("backlight").__version__,
        "pyarrow": writer_version() if settings.format == "parquet" else None,
        "input": {"kind": source.kind, "files": files, **_how_read(source)},
        "model": {
            "name": ranker.name,
            "score_name": ranker.score_name,
            "max_tokens": ranker.max_tokens,
            "scores of probes": ranker.score(PairBatch.of(ranker.read(PROBES))).tolist(),
        },
        "settings": asdict(settings),
    }


def _how_read(source: Source) -> dict:
    """Return what else decides which rows a source gives."""
    read = {name: getattr(source, name) for name in ("delimiter", "quotes") if hasattr(source, name)}
    return {**read, "columns": asdict(source.columns)} if hasattr(source, "columns") else read


def begin(folder: Path, job: dict) -> None:
    """Write job.json, or see that the one that is there is of the same job.

    Raises:
        InputError: it is of another.
    """
    file = folder / JOB
    if not file.exists():
        write_whole(file, (json.dumps(job, indent=1, ensure_ascii=False) + "\n").encode())
        return
    differing = list(differences(json.loads(file.read_text(encoding="utf-8")), json.loads(json.dumps(job))))
    if differing:
        raise InputError(
            f"{folder} holds another job, where {'; '.join(differing[:4])}: choose another folder, or add --replace to "
            "begin anew"
        )


def differences(before: object, now: object, name: str = "") -> Iterator[str]:
    """Give what differs between two jobs, in words; names of files may differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            inner = f"{name} {key}".strip()
            if inner.startswith("input files") and key == "name":
                continue
            yield from differences(before.get(key), now.get(key), inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for one, other in zip(before, now):
            yield from differences(one, other, name)
    elif name == "model scores of probes":
        if abs(before - now) > SAME_MODEL * max(1.0, abs(before)):
            yield f"{name} was {before:.4f} and is {now:.4f} (other weights)"
    elif before != now:
        yield f"{name} was {before} and is {now}"
