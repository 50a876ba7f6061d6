"""Merging: check that all units of a planned job are done, unpack their parts, and sum up what was found."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.checksums import Damaged, Records, Repair
from backlight.explain.batch.collection import FILE as TEXTS
from backlight.explain.batch.collection import RECORD as TEXTS_RECORD
from backlight.explain.batch.collection import Collection
from backlight.explain.batch.files import remove
from backlight.explain.batch.job import ID, JOB, PLAN, UNIT_LIST, UNITS, check_folder, drop_cut_short, read_job
from backlight.explain.batch.lock import only_process
from backlight.explain.batch.parts import Parts
from backlight.explain.batch.running import Batch, BatchProgress, in_one_line
from backlight.explain.batch.sharding.packed_parts import DAMAGED_UNIT, unpack_parts
from backlight.explain.batch.sharding.plan import Plan, read_plan, source_of
from backlight.explain.batch.sharding.stores import FolderStore, Store, is_url, store_of
from backlight.explain.batch.sharding.units import in_words
from backlight.explain.batch.summary import summarise


def finish_batch(
    out: Path | str,
    folder: Path | None = None,
    *,
    given: Path | None = None,
    watch: Callable[[BatchProgress], None] = lambda progress: None,
    notice: Callable[[Repair], None] = lambda repair: None,
) -> Batch:
    """Merge the parts of a planned job into a folder as a batch on one machine leaves it, and sum them up.

    A part that was damaged is removed and its unit named as missing. Parts that were merged stay so: the call may be
    repeated.

    Args:
        out: the job's folder, or the URL of an object store.
        folder: where the merged job goes, if `out` is a URL; else it is `out` itself.
        given: where the input lies, if it is not where it was planned.
        watch: called now and then with how far the merging is.
        notice: called with each file that was damaged.

    Raises:
        InputError: units are missing, another process merges, or something cannot be read or written.
    """
    if is_url(out) and folder is None:
        raise InputError(f"the merged job of {out} must go to a folder: name one with --to")
    folder = folder if is_url(out) else Path(out)
    store, plan = store_of(out), read_plan(out)
    if is_url(out):
        check_folder(folder)
    with only_process(folder), in_one_line(folder):
        if is_url(out):
            _fetch_plan(store, folder)
        drop_cut_short(folder)
        repairs: list[Repair] = []

        def repaired(repair: Repair) -> None:
            repairs.append(repair)
            notice(repair)

        job = _job_in(folder)
        if job.get(ID) != plan.job:
            raise InputError(f"{folder} holds another job than {out}: choose another folder")
        records = Records(folder, plan.job)
        parts = Parts(folder, plan.settings, records)
        for number, damage in parts.damaged.items():
            if parts.forget(number):
                repaired(Repair(damage.file, str(damage), DAMAGED_UNIT))

        def unpacked(count: int) -> None:
            rows = min(plan.rows, count * plan.settings.rows)
            watch(BatchProgress("rows", rows=rows, before=0, share=rows / plan.rows, bad=0, total=plan.rows))

        unpack_parts(store, parts, plan.job, repaired, unpacked)
        _check_complete(out, plan, parts)
        if isinstance(store, FolderStore):
            _remove_leftovers(store)
        for repair in parts.tidy(plan.units):
            repaired(repair)
        with closing(source_of(plan.source, folder, given)) as source:
            if isinstance(source, Collection):
                source.prepare(records, repaired)
            watch(BatchProgress("summary", rows=plan.rows, before=0, share=1.0, bad=0))
            counting = {"ideal": source.ideal, "english_only": plan.english_only}
            summary = summarise(folder, parts, job, plan.settings, plan.rows, **counting)
        return Batch(folder, plan.rows, summary["bad"]["count"], 0, tuple(repairs), summary)


def _job_in(folder: Path) -> dict:
    try:
        return read_job(folder / JOB)
    except Damaged as problem:
        raise InputError(
            f"{folder / JOB} {problem}: give the backlight batch plan that began the job once more; no part is lost"
        ) from problem


def _fetch_plan(store: Store, folder: Path) -> None:
    """Copy the files of a plan from an object store, those that the folder lacks."""
    (folder / "done").mkdir(exist_ok=True)
    for name in (JOB, PLAN, UNIT_LIST, TEXTS, f"done/{TEXTS_RECORD}.json"):
        if not (folder / name).exists() and store.exists(name):
            store.fetch(name, folder / name)


def _remove_leftovers(store: FolderStore) -> None:
    """Remove what workers that were killed had begun to write: all units are done."""
    for name in store.names(UNITS):
        if name.startswith(".part-"):
            remove(store.folder / UNITS / name)
    if (store.folder / UNITS).exists() and not store.names(UNITS):
        (store.folder / UNITS).rmdir()


def _check_complete(out: Path | str, plan: Plan, parts: Parts) -> None:
    """Raise if units are not done, and name them."""
    missing = set(range(plan.units)) - parts.done
    if missing:
        are = "unit is" if len(missing) == 1 else "units are"
        raise InputError(
            f"{len(missing):,} of {plan.units:,} {are} not done: give backlight batch work {out} --units "
            f"{in_words(missing)}, then finish again"
        )
