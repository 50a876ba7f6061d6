"""The folder of a batch: what lies where, and what tells that a job is the one that was begun in it.

NOTE [A batch's folder]
    job.json                what decides every byte of the output: input, model, settings, versions
    parts/part-00000.*      some rows of the input
    bad/part-00000.jsonl    the bad rows among them, if any; written before the part
    done/part-00000.json    the record of both, written after them (see NOTE [Checksums of a job])
    bad_rows.jsonl          all bad rows, when all parts are done
    summary.json, words.*   what was found in all of them
    sample.jsonl            the rows that the page shows
    report.html             the page (`backlight batch` writes it)
    standard_input.jsonl    what came from standard input
    texts.sqlite            the texts of a collection; done/texts.json is its record
A job for many workers also has plan.json, units.jsonl and units/ (see NOTE [A planned job] in
explain/batch/sharding/plan.py).
Files are written under a temporary name and renamed. A part is done when its record is there and its files are as
the record says; a job that goes on computes all others, each from its first row. What sums up the parts is written anew
by every run. Nothing in the output depends on when it was written, so it is the same, byte for byte, however often the
job was killed.
"""

import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from backlight.adapters.parquet import writer_version
from backlight.errors import InputError
from backlight.explain.batch.checksums import (
    DONE,
    Damaged,
    Repair,
    hash_of,
    jobs_recorded,
    read_record,
    write_record,
)
from backlight.explain.batch.collection import FILE as TEXTS
from backlight.explain.batch.collection import RECORD as TEXTS_RECORD
from backlight.explain.batch.files import Fingerprint, remove
from backlight.explain.batch.inputs import INCOMING, SPOOLED, Source
from backlight.explain.batch.settings import Settings
from backlight.models.pairs import PairBatch, reads_misspellings
from backlight.models.scorer import Scorer

JOB, SUMMARY, SAMPLE, REPORT, BAD_ROWS = "job.json", "summary.json", "sample.jsonl", "report.html", "bad_rows.jsonl"
PARTS, BAD, UNITS = "parts", "bad", "units"
PLAN, UNIT_LIST = "plan.json", "units.jsonl"  # of a job for many workers
ID = "id"  # the field of job.json that the records of its parts repeat
WORDS = ("words.parquet", "words.jsonl")
OWN_FILES = (JOB, SUMMARY, SAMPLE, REPORT, BAD_ROWS, *WORDS, TEXTS, PLAN, UNIT_LIST)
PROBES = (
    ("what do green plants need", "Plants need light, water and air."),
    ("when did the train leave", "It had left at noon."),
    ("a", "of 1984"),
)
ALL_WINDOWS = {"max_windows": 0}  # what jobs did that were begun before there was such a setting
SAME_MODEL = 1e-4  # how far a probe's score may differ between machines, as a part of it or of 1


def check_folder(folder: Path) -> None:
    """Raise if a folder holds something that is no batch's. Raises InputError: it does, or it is a file."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o must be a folder, got the file {folder}")
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    others = {name for name in names if not name.startswith(".")} - {SPOOLED, TEXTS}
    if others and JOB not in names and DONE not in names:
        raise InputError(
            f"{folder} must be a new or empty folder or a batch's, and holds {', '.join(sorted(others)[:5])}"
        )


def clear(folder: Path) -> None:
    """Remove what a batch wrote into a folder, and nothing else; what came from standard input stays."""
    for name in OWN_FILES:
        remove(folder / name)
    for name in (PARTS, BAD, DONE, UNITS):
        shutil.rmtree(folder / name, ignore_errors=True)


def drop_cut_short(folder: Path) -> None:
    """Remove what processes that were killed had begun to write."""
    begun = [left for name in OWN_FILES for left in folder.glob(f".{name}*")]
    begun += [left for name in (PARTS, BAD, DONE) for left in (folder / name).glob(".part-*")]
    for left in [*begun, folder / DONE / f".{TEXTS_RECORD}.json"]:
        remove(left)
    shutil.rmtree(folder / INCOMING, ignore_errors=True)


def describe(source: Source, fingerprints: Sequence[Fingerprint], ranker: Scorer, settings: Settings) -> dict:
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
            **({"reads_typos": True} if reads_misspellings(ranker) else {}),
            "scores of probes": ranker.score(PairBatch.of(ranker.read(PROBES))).tolist(),
        },
        "settings": asdict(settings),
    }


def _how_read(source: Source) -> dict:
    """Return what else decides which rows a source gives."""
    read = {name: getattr(source, name) for name in ("delimiter", "quotes") if hasattr(source, name)}
    return {**read, "columns": asdict(source.columns)} if hasattr(source, "columns") else read


def begin(folder: Path, job: dict, notice: Callable[[Repair], None]) -> dict:
    """Write job.json, or see that the one that is there is of the same job; return what it says.

    One that is damaged, or missing though there are records of parts, is written anew if those are of this job.

    Args:
        job: as `describe` gives it.
        notice: called with the damage.

    Raises:
        InputError: it is of another job.
    """
    file, job = folder / JOB, json.loads(json.dumps(job))
    identity = hash_of(_without_names(job))
    before = None
    (folder / DONE).mkdir(exist_ok=True)  # whatever happens to job.json, it says that the folder is a batch's
    if os.path.lexists(file) or (folder / PARTS).exists():
        try:
            before = read_job(file)
        except Damaged as problem:
            _check_recorded(folder, identity, str(problem))
            notice(Repair(JOB, str(problem), "written anew, as this command says"))
    if before is not None:
        _check_same(folder, before, job)
        if ID in before:
            return before
    job[ID] = identity
    write_record(file, job)
    return job


def read_job(file: Path) -> dict:
    """Return job.json; a version of backlight that kept no hashes wrote the same without an identity."""
    try:
        return read_record(file, JOB)
    except Damaged:
        try:
            found = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and set(found) == {"backlight", "pyarrow", "input", "model", "settings"}:
            return found
        raise


def _check_recorded(folder: Path, identity: str, damage: str) -> None:
    """Raise if the records next to a damaged job.json are of another job than the one that is to be run."""
    jobs = jobs_recorded(folder)
    if jobs and identity not in jobs:
        raise InputError(
            f"{folder / JOB} {damage}, and the parts beside it are of another job than this command's: use the "
            "command that started it, choose another folder, or add --replace to start over"
        )


def _check_same(folder: Path, before: dict, job: dict) -> None:
    old = {name: value for name, value in before.items() if name != ID}
    if isinstance(old.get("settings"), dict):
        old["settings"] = ALL_WINDOWS | old["settings"]
    differing = list(differences(old, job))
    if differing:
        raise InputError(
            f"{folder} holds another job, where {'; '.join(differing[:4])}: choose another folder, or add --replace to "
            "start over"
        )


def _without_names(job: dict) -> dict:
    """Return a job without the names of its files, which decide nothing."""
    files = [{name: value for name, value in file.items() if name != "name"} for file in job["input"]["files"]]
    return {**job, "input": {**job["input"], "files": files}}


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
        yield f"{name} was {'not given' if before is None else before} and is {'not given' if now is None else now}"
