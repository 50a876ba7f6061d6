"""The doctor's report, as text, JSON, SARIF, and in a notebook.

NOTE [Which corrections are fixes]
Tools apply SARIF's fixes without a look. So a corrected line is a fix only if it was verified by a rerun, or if it is
of a kind that changes nothing but the mistake: a conversion that the program means anyway, missing parentheses.
"""

import dataclasses
import hashlib
import importlib
import json
import linecache
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from backlight.lens.doctor.corrections.rerun import Rerun
from backlight.lens.doctor.coverage import Coverage
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.session import Session
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")


class Report:
    """The findings of a session, while it runs and after it."""

    def __init__(self, session: Session):
        self.session = session

    @property
    def findings(self) -> list[Finding]:
        """What was found so far; notes only if they were requested."""
        return self.session.findings

    @property
    def coverage(self) -> Coverage:
        """What was recorded of the program and what was not."""
        return self.session.coverage

    @property
    def looked_at(self) -> Coverage:
        """The name that `coverage` had in 0.1.0."""
        return self.coverage

    @property
    def summary(self) -> str:
        """How many findings, in what: `no findings in 12 steps: 12 backwards, 1 optimizer with 6 parameters`."""
        return f"{counted(len(self), 'finding') if len(self) else 'no findings'} in {self.coverage}"

    def verify(self, rerun: Rerun) -> None:
        """Run the script again with each corrected line, and note which of them leave no finding."""
        self.session.replace(rerun.verified(self.findings))

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "\n\n".join([*map(describe, self.findings), f"doctor: {self.summary}"])

    def __repr__(self) -> str:
        return f"<Report: {self.summary}>"

    def to_json(self, **options) -> str:
        """Return the findings, and what was looked at, as JSON."""
        findings = [dataclasses.asdict(found) for found in self.findings]
        return json.dumps({"findings": findings, "coverage": self.coverage.to_dict()}, **options)

    def to_sarif(self, **options) -> str:
        """Return the findings as SARIF 2.1.0, which code hosts and editors read."""
        return json.dumps(sarif(self.findings, self.coverage), **options)

    def _repr_html_(self) -> str:
        cards = "".join(card(found) for found in self.findings)
        return f'<section class="doctor"><style>{STYLE}</style>{cards}<p>{escape(self.summary)}</p></section>'


class ReportLine(NamedTuple):
    """A line of a finding: what it is (`head`, `place`, `source`, `evidence`, `corrected` …), and its text."""

    kind: str
    text: str


def parts(found: Finding) -> Iterator[ReportLine]:
    """Yield the lines of a finding: what is wrong and where, the evidence, the likely cause, what to try."""
    times = f" ({found.times} times)" if found.times > 1 else ""
    yield ReportLine("head", f"{found.title}{times}")
    if found.place is not None:
        yield ReportLine("place", f"{found.place.file}:{found.place.line}")
        if found.place.text:
            yield ReportLine("source", found.place.text)
    for seen in found.evidence:
        yield ReportLine("evidence", seen)
    if found.path:
        yield ReportLine("path", " ".join(found.path))
    yield ReportLine("likely cause", found.cause)
    yield ReportLine("try", found.cure)
    if found.corrected:
        other = found.corrected_at is not None and found.corrected_at != found.place
        if other:
            yield ReportLine("place", f"{found.corrected_at.file}:{found.corrected_at.line}")
            yield ReportLine("source", found.corrected_at.text)
        yield ReportLine("corrected", found.corrected)
        if found.verified:
            yield ReportLine("verified", "the corrected script has no findings")


def describe(found: Finding) -> str:
    """Return a finding as plain text."""
    return "\n".join(plain_line(found, part) for part in parts(found))


def plain_line(found: Finding, part: ReportLine) -> str:
    """Return one line of a finding as plain text."""
    if part.kind == "head":
        return f"{found.rule} {found.level}: {part.text}"
    if part.kind == "place":
        return f"  {part.text}"
    if part.kind in ("source", "corrected"):
        mark = "+" if part.kind == "corrected" else " "
        return "\n".join(f"    {mark} {line}" for line in part.text.splitlines())
    return f"  {part.kind}: {part.text}"


def card(found: Finding) -> str:
    """Return a finding as HTML; text from the program is escaped."""
    rows = []
    for kind, text in parts(found):
        name = kind.replace(" ", "-")
        if kind == "head":
            rows.append(f'<h4><b class="{found.level}">{found.rule} {found.level}</b> {escape(text)}</h4>')
        elif kind in ("source", "corrected"):
            rows.append(f'<pre class="{name}">{escape(text)}</pre>')
        elif kind == "place":
            rows.append(f'<p class="place">{escape(text)}</p>')
        else:
            rows.append(f'<p class="{name}"><span>{kind}</span> {escape(text)}</p>')
    return f"<article>{''.join(rows)}</article>"


ALWAYS_SAFE = frozenset({"BL004", "BL009", "BL501", "BL502", "BL505", "BL614", "BL713", "BL911", "BL912"})
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: Sequence[Finding], coverage: Coverage) -> dict:
    """Return a SARIF log of one run; the coverage is in the run's properties."""
    names = sorted({found.rule for found in findings})
    driver = {
        "name": "backlight doctor",
        "version": importlib.import_module("backlight").__version__,
        "rules": [_rule(name) for name in names],
    }
    results = [_result(found, names.index(found.rule)) for found in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    run["properties"] = {"coverage": coverage.to_dict()}
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
    """Return the replacement of a line by its corrected text, if that is sure (NOTE [Which corrections are fixes])."""
    place = found.corrected_at or found.place
    if place is None or not found.corrected or not place.text or not (found.verified or found.rule in ALWAYS_SAFE):
        return None
    lines = linecache.getlines(place.file)
    full_line = lines[place.line - 1].rstrip("\n") if place.line <= len(lines) else ""
    opens_block = found.corrected.endswith(":") and not full_line.rstrip().endswith(":")
    if full_line.strip() != place.text or opens_block:
        return None
    indent = full_line[: len(full_line) - len(full_line.lstrip())]
    start = len(indent) + 1
    text = f"\n{indent}".join(found.corrected.splitlines())
    region = {"startLine": place.line, "startColumn": start, "endLine": place.line, "endColumn": len(full_line) + 1}
    change = {
        "artifactLocation": {"uri": _uri(place.file)},
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": text}}],
    }
    return {"description": {"text": found.cure}, "artifactChanges": [change]}
