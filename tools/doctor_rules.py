"""Write the table of the doctor's rules into docs/doctor.md: `python tools/doctor_rules.py`."""

import re
from pathlib import Path

from backlight.lens.doctor.rule_index import families

PAGE = Path(__file__).parent.parent / "docs" / "doctor.md"
BETWEEN = re.compile(r"(?<=<!-- rules -->\n).*(?=<!-- end of rules -->)", re.DOTALL)


def table() -> str:
    """Return all rules, a table for each family."""
    lines = []
    for prefix, (name, rules) in families().items():
        lines += [
            f"### {prefix}xx: {name}",
            "",
            "| id | name | level | what is found | PyTorch |",
            "|---|---|---|---|---|",
        ]
        for rule in rules:
            says = "says so" if rule.says else "is silent"
            lines.append(f"| {rule.id} | `{rule.slug}` | {rule.level} | {_cell(rule.title)} | {says} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BETWEEN.sub(lambda _: table(), text), encoding="utf-8")
