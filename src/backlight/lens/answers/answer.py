"""What `lens.why` answers."""

import textwrap
from dataclasses import dataclass
from html import escape

from backlight.lens.finding import Finding

WIDTH = 100
STYLE = "font:14px/1.5 system-ui,sans-serif;max-width:52em"
CODE = "font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;margin:.3em 0 .8em"


@dataclass(frozen=True, repr=False)
class Answer:
    """Why a gradient is what it is.

    Args:
        question: such as `Why is w.grad None?`.
        verdict: the answer in one line.
        evidence: recorded values and lines, one sentence each.
        cause: the likely cause; "" if nothing is wrong.
        cure: what to try; "" if there is nothing to fix.
        path: the relevant path through the graph, from the loss, one node per item.
        finding: the doctor's finding, if one of its rules applies; `backlight doctor --explain` describes that rule.
    """

    question: str
    verdict: str
    evidence: tuple[str, ...] = ()
    cause: str = ""
    cure: str = ""
    path: tuple[str, ...] = ()
    finding: Finding | None = None

    def __str__(self) -> str:
        parts = [self.question, _filled(self.verdict, "  ")]
        parts += [_filled(one, "  · ") for one in self.evidence]
        parts += [f"  {'  ' * min(depth, 20)}{step}" for depth, step in enumerate(self.path)]
        parts += [_filled(f"Cause: {self.cause}", "  ")] if self.cause else []
        parts += [_filled(f"Try: {self.cure}", "  ")] if self.cure else []
        if self.finding is not None:
            parts.append(
                f"  Rule {self.finding.rule} {self.finding.slug}: backlight doctor --explain {self.finding.rule}"
            )
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<Answer: {self.question} {self.verdict}>"

    def _repr_html_(self) -> str:
        """Show the answer in a notebook."""
        lines = "".join(f"<li>{escape(one)}</li>" for one in self.evidence)
        rows = "\n".join(f"{'  ' * min(depth, 20)}{step}" for depth, step in enumerate(self.path))
        parts = [f"<p><b>{escape(self.question)}</b><br>{escape(self.verdict)}</p>"]
        parts += [f"<ul>{lines}</ul>"] if lines else []
        parts += [f'<div style="{CODE}">{escape(rows)}</div>'] if rows else []
        parts += [f"<p><i>Cause:</i> {escape(self.cause)}</p>"] if self.cause else []
        parts += [f"<p><i>Try:</i> {escape(self.cure)}</p>"] if self.cure else []
        return f'<div style="{STYLE}">{"".join(parts)}</div>'


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent))
