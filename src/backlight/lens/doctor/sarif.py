"""Findings as SARIF 2.1.0: a standard form in which code hosts and editors show results at their lines."""

import hashlib
import importlib
import linecache
from collections.abc import Sequence
from pathlib import Path

from backlight.lens.doctor.rule_index import rule
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: Sequence[Finding]) -> dict:
    """Return a SARIF log of one run."""
    names = sorted({found.rule for found in findings})
    driver = {
        "name": "backlight doctor",
        "version": importlib.import_module("backlight").__version__,
        "rules": [_rule(name) for name in names],
    }
    results = [_result(found, names.index(found.rule)) for found in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict:
    known = rule(name)
    return {
        "id": known.id,
        "name": "".join(word.capitalize() for word in known.slug.split("-")),
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.explanation},
        "help": {"text": f"{known.cause} {known.cure}"},
        "defaultConfiguration": {"level": known.level},
    }


def _result(found: Finding, index: int) -> dict:
    lines = [found.title, *found.evidence, f"Likely cause: {found.cause}", f"Try: {found.cure}"]
    if found.corrected:
        lines.append(found.corrected)
    result = {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": found.level,
        "message": {"text": "\n".join(lines)},
        "occurrenceCount": found.times,
    }
    if found.place is not None:
        result["locations"] = [{"physicalLocation": _location(found.place)}]
        result["partialFingerprints"] = {"ruleAndLine/v1": _fingerprint(found)}
    fix = _fix(found)
    if fix is not None:
        result["fixes"] = [fix]
    return result


def _location(place: Place) -> dict:
    region = {"startLine": place.line}
    if place.text:
        region["snippet"] = {"text": place.text}
    return {"artifactLocation": {"uri": _uri(place.file)}, "region": region}


def _uri(file: str) -> str:
    """Return a path as SARIF wants it: relative to the working directory where it lies inside."""
    path = Path(file)
    if not path.is_absolute():
        return path.as_posix()
    inside = path.is_relative_to(Path.cwd())
    return path.relative_to(Path.cwd()).as_posix() if inside else path.as_uri()


def _fingerprint(found: Finding) -> str:
    """Return what makes a finding the same one after other lines have moved."""
    return hashlib.sha256(f"{found.rule}\0{Path(found.place.file).name}\0{found.place.text}".encode()).hexdigest()[:32]


def _fix(found: Finding) -> dict | None:
    """Return the replacement of one line by its corrected text."""
    place = found.corrected_at or found.place
    if place is None or not found.corrected or "\n" in found.corrected or not place.text:
        return None
    lines = linecache.getlines(place.file)
    full_line = lines[place.line - 1].rstrip("\n") if place.line <= len(lines) else ""
    opens_block = found.corrected.endswith(":") and not full_line.rstrip().endswith(":")
    if full_line.strip() != place.text or opens_block:
        return None
    start = len(full_line) - len(full_line.lstrip()) + 1
    region = {"startLine": place.line, "startColumn": start, "endLine": place.line, "endColumn": len(full_line) + 1}
    change = {
        "artifactLocation": {"uri": _uri(place.file)},
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": found.corrected}}],
    }
    return {"description": {"text": found.cure}, "artifactChanges": [change]}
