"""Packed parts: all that a unit came to in one file, so that creating the file is what makes the unit done.

NOTE [Packed parts]
A packed part is a line of JSON, then the bytes of the part's file and of its bad rows, one after the other. The line
has the record that `done/` will hold (see NOTE [Checksums of a job]), who computed it and in how many seconds, and a
hash of itself. It lies in `units/` under a name that depends on the unit alone, and is created, never replaced: of two
workers that do the same unit the first wins, and the other one's result is dropped. Which units are done is the set of
names there; what is in them is verified when they are merged.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from backlight.explain.batch.checksums import DONE, OWN, Damaged, Repair, checksum, hash_of
from backlight.explain.batch.job import UNITS
from backlight.explain.batch.parts import BAD_COLUMNS, Parts, bad_file, part_file, part_name, records_as_bytes
from backlight.explain.batch.rows import BadRow
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.sharding.stores import FolderStore, Store

DAMAGED_UNIT = "removed, and its unit is to be done again"
PACKED = re.compile(r"part-(\d{5,})\.packed")
RECORD_NAME = re.compile(r"part-(\d{5,})\.json")


def packed_file(number: int) -> str:
    """Return the name of a unit's packed part, relative to the job's folder."""
    return f"{UNITS}/{part_name(number)}.packed"


def pack(job: str, number: int, results: Sequence[dict | BadRow], settings: Settings, by: Mapping) -> bytes:
    """Return the packed part of a unit.

    Args:
        job: the job's identity.
        number: of the unit.
        results: a record for each of its rows, or why there is none.
        settings: of the job.
        by: which worker computed them, and how long that took.
    """
    good = [one for one in results if not isinstance(one, BadRow)]
    bad = [asdict(one) for one in results if isinstance(one, BadRow)]
    files = {part_file(number, settings.format): records_as_bytes(f".{settings.format}", good, settings.columns())}
    if bad:
        files[bad_file(number)] = records_as_bytes(".jsonl", bad, BAD_COLUMNS)
    record = {"job": job, "name": part_name(number), "rows": len(good), "bad": len(bad)}
    record["files"] = {name: checksum(content) for name, content in files.items()}
    head = {"record": record, "by": dict(by)}
    return b"".join([json.dumps({**head, OWN: hash_of(head)}).encode() + b"\n", *files.values()])


def unpack(content: bytes, job: str, number: int) -> tuple[dict, dict[str, bytes]]:
    """Return the record of a packed part and its files' bytes by their names.

    Raises:
        Damaged: it is not as it was written, or is of another job or unit.
    """
    name = packed_file(number)
    record = head_of(content, name)["record"]
    if record["job"] != job:
        raise Damaged("is of another job", name)
    if record["name"] != part_name(number):
        raise Damaged(f"is a copy of {record['name']}.packed", name)
    at, files = content.index(b"\n") + 1, {}
    for file, written in record["files"].items():
        files[file] = content[at : at + written["bytes"]]
        at += written["bytes"]
        if checksum(files[file]) != written:
            raise Damaged("is not as it was written", name)
    if at != len(content):
        raise Damaged("is longer than it was written", name)
    return record, files


def head_of(content: bytes, name: str) -> dict:
    """Return the first line of a packed part. Raises Damaged: it is not as it was written."""
    try:
        head = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError) as problem:
        raise Damaged("is not as it was written", name) from problem
    if not isinstance(head, dict) or head.pop(OWN, None) != hash_of(head):
        raise Damaged("is not as it was written", name)
    return head


def is_done(store: Store, number: int) -> bool:
    """Return whether a unit is done: its part is there, packed or merged already."""
    return store.exists(packed_file(number)) or store.exists(f"{DONE}/{part_name(number)}.json")


def units_done(store: Store) -> set[int]:
    """Return the numbers of the units that are done, by the names of their parts, packed or merged already."""
    found = {int(match[1]) for name in store.names(UNITS) if (match := PACKED.fullmatch(name))}
    return found | {int(match[1]) for name in store.names(DONE) if (match := RECORD_NAME.fullmatch(name))}


def unpack_parts(
    store: Store,
    parts: Parts,
    job: str,
    notice: Callable[[Repair], None],
    progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Write the packed parts of a store into the folder of a batch, those that it lacks; remove them from a folder.

    One that was damaged is removed, from an object store too.

    Args:
        job: the job's identity.
        notice: called with each one that was damaged.
        progress: called with how many are in the folder.
    """
    for number in sorted(int(match[1]) for name in store.names(UNITS) if (match := PACKED.fullmatch(name))):
        name = packed_file(number)
        if number not in parts.done:
            try:
                parts.take(number, *unpack(store.read(name), job, number))
            except Damaged as problem:
                store.remove(name)
                notice(Repair(name, str(problem), DAMAGED_UNIT))
                continue
        if isinstance(store, FolderStore):
            store.remove(name)
        progress(len(parts.done))
