"""A finding's corrected line, put into the source that it is for."""

import ast
import textwrap
from pathlib import Path

from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

BLOCKS = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.FunctionDef, ast.ClassDef)


def place_of_correction(found: Finding) -> Place | None:
    """Return the line that a finding's corrected line is for, if it has one."""
    return (found.corrected_at or found.place) if found.corrected else None


def corrects(found: Finding, path: str) -> bool:
    """Return whether a finding has a corrected line for a file."""
    place = place_of_correction(found)
    return place is not None and Path(place.file).resolve() == Path(path).resolve()


def applied(source: str, findings: list[Finding]) -> str | None:
    """Return a source with the corrected lines of findings in it, the last line first; None if that is no Python."""
    ordered = sorted(findings, key=lambda found: place_of_correction(found).line, reverse=True)
    for found in ordered:
        source = _one_applied(source, found)
        if source is None:
            return None
    return source


def _one_applied(source: str, found: Finding) -> str | None:
    line = place_of_correction(found).line
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return None
    first, last = _statement_at(source, line)
    several = [(first, last), (line, line)] if "\n" in found.corrected else [(line, line), (first, last)]
    for start, end in several:
        indent = lines[start - 1][: len(lines[start - 1]) - len(lines[start - 1].lstrip())]
        text = textwrap.indent(found.corrected, indent)
        whole = "\n".join([*lines[: start - 1], text, *lines[end:]]) + "\n"
        if _parses(whole):
            return whole
    return None


def _statement_at(source: str, line: int) -> tuple[int, int]:
    """Return the lines of the innermost plain statement at a line; the line itself for the head of a block."""
    statements = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]
    inner = max(statements, key=lambda node: node.lineno, default=None)
    return (line, line) if inner is None or isinstance(inner, BLOCKS) else (inner.lineno, inner.end_lineno)


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True
