"""The plan of a job for many workers: its input cut into units, and all that a worker must have to do one.

NOTE [A planned job]
A folder, or the URL of an object store, that holds
    job.json       as a batch on one machine writes it (see NOTE [A batch's folder] in explain/batch/job.py)
    units.jsonl    the units (see NOTE [Units]), one a line
    plan.json      what a worker needs: the source, the model by name and hash, kernels, threads; written last
    units/*        packed parts (see NOTE [Packed parts] in explain/batch/sharding/packed_parts.py)
    texts.sqlite   the texts of a collection
The folder is that of a batch on one machine, which can go on in it: merging turns packed parts into its parts.
"""

import importlib
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from dataclasses import replace as replaced
from pathlib import Path
from typing import TypeVar

from backlight.errors import InputError
from backlight.explain.batch.checksums import Damaged, Records, Repair, checksum, record_bytes, record_in
from backlight.explain.batch.collection import FILE as TEXTS
from backlight.explain.batch.collection import RECORD as TEXTS_RECORD
from backlight.explain.batch.collection import Collection
from backlight.explain.batch.files import fingerprint, write_file
from backlight.explain.batch.inputs import (
    Given,
    JsonLines,
    ParquetFiles,
    Reading,
    Source,
    Table,
    keep_spooled,
    open_input,
)
from backlight.explain.batch.job import (
    ID,
    JOB,
    PLAN,
    UNIT_LIST,
    begin,
    check_folder,
    clear,
    describe,
    drop_cut_short,
)
from backlight.explain.batch.lock import only_process
from backlight.explain.batch.rows import BadRow, Columns
from backlight.explain.batch.running import check_unchanged, in_one_line, stat_of
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.stores import Store, is_url, store_of
from backlight.explain.batch.sharding.units import Unit, cut
from backlight.explain.methods.registry import DEFAULT
from backlight.kernels.native import compiled

Found = TypeVar("Found")
KINDS: Mapping[str, type[Source]] = {one.kind: one for one in (JsonLines, Table, ParquetFiles, Collection)}


@dataclass(frozen=True)
class Plan:
    """A planned job, as plan.json has it (see NOTE [A planned job]).

    Args:
        job: its identity.
        backlight: the version that planned it, which workers must have.
        kernels: the level of instructions that workers must compute with, or "numpy".
        units: how many there are.
        rows: of the input, bad ones counted.
        unit_list: the hash of units.jsonl.
        source: how the input is read (see `source_of`).
        model: which model scores.
        model_blake2b: the hash of its files.
        english_only: whether the model is known to read English only.
        settings: what is computed and kept.
    """

    job: str
    backlight: str
    kernels: str
    units: int
    rows: int
    unit_list: str
    source: Mapping
    model: ModelReference
    model_blake2b: str
    english_only: bool
    settings: Settings

    @classmethod
    def of(cls, record: Mapping) -> "Plan":
        """Return the plan that plan.json describes."""
        found = {"model": ModelReference(**record["model"]), "settings": Settings(**record["settings"])}
        return cls(**{**record, **found})


def version() -> str:
    """Return backlight's version."""
    return importlib.import_module("backlight").__version__


def kernels_in_use() -> str:
    """Return the level of instructions that this process computes with, or "numpy"."""
    return "numpy" if compiled is None else compiled.level()


def plan_batch(
    given: Given,
    out: Path | str,
    model: ModelReference = ModelReference(),
    settings: Settings = Settings(),
    *,
    reading: Reading = Reading(),
    replace: bool = False,
    notice: Callable[[Repair], None] = lambda repair: None,
) -> Plan:
    """Cut an input into units and write the plan of the job. The same call again writes the same plan.

    Args:
        given: as `run_batch` takes it; workers read it where it lies now, or where `--input` says.
        out: a folder that all workers reach, or the URL of an object store.
        model: which model scores.
        settings: what is computed and kept.
        reading: how the input is read.
        replace: whether a job that is in the folder is removed first.
        notice: called with each file of the job that was damaged.

    Raises:
        InputError: the input cannot be used, or `out` holds another job or something else.
    """
    if not is_url(out):
        return _plan_in(Path(out), given, model, settings, reading, replace, notice)
    if not isinstance(given, (str, Path)) or str(given) == "-":
        raise InputError(f"with an object store as output, {out}, INPUT must be a file or folder that workers can read")
    if replace:
        raise InputError(
            f"--replace must be left out for {out}: nothing in an object store is replaced; choose another"
        )
    store = store_of(out)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "job"
        plan = _plan_in(folder, given, model, settings, reading, False, notice)
        with in_one_line(out):
            _upload(folder, store, str(out))
    return plan


def _upload(folder: Path, store: Store, out: str) -> None:
    """Write the files of a plan to a store, plan.json last."""
    texts = [TEXTS, f"done/{TEXTS_RECORD}.json"] if (folder / TEXTS).exists() else []
    for name in (*texts, UNIT_LIST, JOB, PLAN):
        content = (folder / name).read_bytes()
        if not store.create(name, content) and store.read(name) != content:
            raise InputError(f"{out} holds another job, and nothing in an object store is replaced: choose another URL")


def _plan_in(
    folder: Path,
    given: Given,
    model: ModelReference,
    settings: Settings,
    reading: Reading,
    replace: bool,
    notice: Callable[[Repair], None],
) -> Plan:
    check_folder(folder)
    with only_process(folder), in_one_line(folder):
        if replace:
            clear(folder)
        drop_cut_short(folder)
        try:
            with closing(open_input(given, folder, reading)) as source:
                return _planned(folder, source, model.everywhere, settings, notice)
        finally:
            drop_cut_short(folder)


def _planned(
    folder: Path, source: Source, model: ModelReference, settings: Settings, notice: Callable[[Repair], None]
) -> Plan:
    stats = [stat_of(file) for file in source.files]
    fingerprints = [fingerprint(file) for file in source.files]
    reranker = model.load()
    if settings.method == DEFAULT and reranker.estimate and "estimate" not in settings.options:
        settings = replaced(settings, options={**settings.options, "estimate": reranker.estimate})
    fresh = not (folder / JOB).exists()
    job = begin(folder, describe(source, fingerprints, reranker.scorer, settings), notice)
    try:
        source = keep_spooled(source, folder)
        source.prepare(Records(folder, job[ID]), notice)
        units = _units_of(source, settings)
        for file, before in zip(source.files, stats):
            check_unchanged(file, before)
    except InputError:
        if fresh:
            clear(folder)
        raise
    finally:
        source.close()
    listed = b"".join(json.dumps(unit.as_record()).encode() + b"\n" for unit in units)
    plan = Plan(
        job=job[ID],
        backlight=version(),
        kernels=kernels_in_use(),
        units=len(units),
        rows=sum(unit.rows for unit in units),
        unit_list=checksum(listed)["blake2b"],
        source=source_record(source, folder),
        model=model,
        model_blake2b=model.blake2b(),
        english_only=reranker.reads_english_only,
        settings=settings,
    )
    _check_same_plan(folder, plan)
    write_file(folder / UNIT_LIST, listed)
    write_file(folder / PLAN, record_bytes(asdict(plan)))
    return plan


def _units_of(source: Source, settings: Settings) -> list[Unit]:
    units = []
    for unit, rows in cut(source, settings.rows):
        if not units and all(isinstance(row, BadRow) for row in rows):
            raise InputError(
                f"{source.files[0].name} must hold rows that can be used, and of the first {len(rows):,} none can: "
                f"line {rows[0].line} {rows[0].reason}"
            )
        units.append(unit)
    if not units:
        raise InputError(f"{source.files[0].name} must hold a row at least, and is empty")
    return units


def _check_same_plan(folder: Path, plan: Plan) -> None:
    """Raise if workers may already compute with other kernels, or another model's files, than a plan says."""
    try:
        before = Plan.of(record_in((folder / PLAN).read_bytes(), PLAN))
    except (OSError, Damaged):
        return
    for name in ("backlight", "kernels", "model_blake2b"):
        if getattr(before, name) != getattr(plan, name):
            raise InputError(
                f"{folder} was planned with another {name} ({getattr(before, name)}) than this command's "
                f"({getattr(plan, name)}): choose another folder, or add --replace to start over"
            )


def source_record(source: Source, folder: Path) -> dict:
    """Return how a source is opened again; a file in the job's folder is named by its name alone."""
    found: dict[str, object] = {"kind": source.kind}
    for field in fields(source):
        value = getattr(source, field.name)
        if isinstance(value, Path):
            found[field.name] = value.name if value.parent == folder else str(value.resolve())
        elif isinstance(value, Columns):
            found[field.name] = asdict(value)
        elif not field.name.startswith("_"):
            found[field.name] = value
    return found


FILES = ("file", "pairs", "corpus", "queries", "qrels")  # the fields of a source's record that name files


def source_of(record: Mapping, folder: Path, given: Path | None = None) -> Source:
    """Return the source that `source_record` describes.

    Args:
        folder: the job's.
        given: where the file or folder of the pairs lies, if it is not where it was.
    """
    found = {name: value for name, value in record.items() if name != "kind"}
    for name in FILES:
        if found.get(name) is not None:
            found[name] = folder / found[name]
    if given is not None:
        found["pairs" if record["kind"] == Collection.kind else "file"] = given
    if "columns" in found:
        found["columns"] = Columns(**found["columns"])
    return KINDS[record["kind"]](**found)


def read_plan(out: Path | str) -> Plan:
    """Return the plan of a job. Raises InputError: there is none, or it is damaged."""
    return _plan_of(store_of(out), str(out))


def _plan_of(store: Store, out: str) -> Plan:
    return Plan.of(_read(store, out, PLAN, lambda content: record_in(content, PLAN)))


def read_units(out: Path | str, plan: Plan) -> list[Unit]:
    """Return the units of a job. Raises InputError: their list is damaged."""

    def parse(content: bytes) -> list[Unit]:
        if checksum(content)["blake2b"] != plan.unit_list:
            raise Damaged("is not as it was written", UNIT_LIST)
        return [Unit.of(json.loads(line)) for line in content.splitlines()]

    return _read(store_of(out), str(out), UNIT_LIST, parse)


def _read(store: Store, out: str, name: str, parse: Callable[[bytes], Found]) -> Found:
    try:
        return parse(store.read(name))
    except FileNotFoundError as problem:
        raise InputError(
            f"{out} must hold a planned job, and has no {name}: give backlight batch plan INPUT -o {out} first"
        ) from problem
    except OSError as problem:
        raise InputError(f"cannot read {name} of {out}: {problem.strerror or problem}") from problem
    except Damaged as problem:
        raise InputError(
            f"{name} of {out} {problem}: give the backlight batch plan that began it once more; no part is lost"
        ) from problem
