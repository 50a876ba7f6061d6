"""What a block under the doctor ended in, as text and as JSON."""

import dataclasses
import json

from backlight.lens.doctor.session import Session
from backlight.lens.finding import Finding


class Report:
    """The findings of a session, while it runs and after it."""

    def __init__(self, session: Session):
        self.session = session

    @property
    def findings(self) -> list[Finding]:
        """What was found so far; notes only if they were asked for."""
        return self.session.findings

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self):
        return iter(self.findings)

    def __str__(self) -> str:
        return "\n\n".join(describe(found) for found in self.findings) or "no findings"

    def __repr__(self) -> str:
        return f"<Report: {len(self)} findings>"

    def to_json(self, **options) -> str:
        """Return the findings as JSON."""
        return json.dumps({"findings": [dataclasses.asdict(found) for found in self.findings]}, **options)


def describe(found: Finding) -> str:
    """Return a finding as text: what is wrong and where, evidence, likely cause, what to try."""
    lines = [f"{found.rule} {found.level}: {found.title}" + (f" ({found.times} times)" if found.times > 1 else "")]
    if found.place is not None:
        lines.append(f"  {found.place.file}:{found.place.line}" + (f": {found.place.text}" if found.place.text else ""))
    lines += [f"  evidence: {seen}" for seen in found.evidence]
    if found.path:
        lines.append(f"  path: {' '.join(found.path)}")
    lines += [f"  likely cause: {found.cause}", f"  try: {found.cure}"]
    if found.corrected:
        lines.append(f"       {found.corrected.strip()}")
    return "\n".join(lines)
