"""Cuts the code blocks out of the founding documents and runs them under PyTorch and under backlight.

    python tools/seeds.py FOLDER

FOLDER holds the documents, which are not part of this project: texts with fenced Python blocks, and notebooks written
out as text, where `In [n]:` starts a cell and its output follows. The blocks of a document share one session. For each
block the two outputs must be equal, addresses apart, and numbers to four digits. Exit code: 0, 1 if a block differs, 2
if FOLDER cannot be used.
"""

import ast
import builtins
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

SESSION = Path(__file__).with_name("seed_session.py")
SOURCE = Path(__file__).parent.parent / "src"
GIVEN = {"display", "torch", "device", *dir(builtins)}  # names that a session starts with
ADDRESS = re.compile(r"0x[0-9a-f]+")
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")
TRIGGERED = re.compile(r" \(Triggered internally at [^)]*\)")
DIGITS = 1e-4


@dataclass(frozen=True)
class Block:
    """One block of code, and what it is called in the table."""

    name: str
    code: str


def fenced_blocks(text: str) -> Iterator[Block]:
    """Cut out the blocks between ```python and ```."""
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE), 1):
        yield Block(f"block {number}", code)


def notebook_cells(text: str) -> Iterator[Block]:
    """Cut out the cells of a notebook, without what they printed and what was written between them."""
    known = set(GIVEN)
    for title, following in re.findall(r"^(In \[\d+\]):\n(.*?)(?=^In \[|\Z)", text, re.DOTALL | re.MULTILINE):
        code = leading_code(following, known)
        known |= {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
        yield Block(title, code)


def cells_from_section_two(text: str) -> Iterator[Block]:
    """Cut out the cells that follow the heading of section 2: section 1 downloads a data set."""
    return notebook_cells(re.split(r"^#+ 2\.", text, maxsplit=1, flags=re.MULTILINE)[1])


DOCUMENTS: dict[str, Callable[[str], Iterator[Block]]] = {
    "002": fenced_blocks,
    "003": notebook_cells,
    "004": cells_from_section_two,
}


def leading_code(text: str, known: set[str]) -> str:
    """Return the longest beginning of `text` that is code, as opposed to the output and the prose after it.

    Some output is Python too, such as `None` or `tensor([1., 1.])`: a constant, an annotation without a value, or a
    call of what no code has mentioned.
    """
    lines = text.splitlines()
    for count in range(len(lines), 0, -1):
        code = "\n".join(lines[:count])
        try:
            statements = ast.parse(code).body
        except SyntaxError:
            continue
        if not any(_is_output(statement, known) for statement in statements):
            return code + "\n"
    return ""


def _is_output(statement: ast.stmt, known: set[str]) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    if not isinstance(statement, ast.Expr):
        return False
    called = statement.value.func if isinstance(statement.value, ast.Call) else None
    return isinstance(statement.value, ast.Constant) or (isinstance(called, ast.Name) and called.id not in known)


def outcomes(blocks: list[Block], *, backlight: bool) -> list[dict]:
    """Run the blocks in one session of a new process, and return what `seed_session.py` notes of each."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "blocks.json"), Path(folder, "outcomes.json")
        given.write_text(json.dumps([block.code for block in blocks]))
        command = [sys.executable, *(["-m", "backlight", "run"] if backlight else []), SESSION, given, found]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
        return json.loads(found.read_text())


def difference(ours: dict, theirs: dict) -> str | None:
    """Return the first line in which two outcomes differ, or None."""
    if (ours["error"] is None) != (theirs["error"] is None):
        return f"backlight: {ours['error']}, PyTorch: {theirs['error']}"
    if not (ours["error"] or "").startswith(theirs["error"] or ""):  # ours may go on to say what to do
        return f"backlight: {ours['error']}, PyTorch: {theirs['error']}"
    for mine, other in zip_longest(_lines(ours), _lines(theirs), fillvalue=""):
        if not _same_line(mine, other):
            return f"backlight: {mine!r}, PyTorch: {other!r}"
    return None


def _lines(outcome: dict) -> list[str]:
    warned = [f"warning: {TRIGGERED.sub('', text)}" for text in outcome["warned"]]
    return [ADDRESS.sub("0x", line) for line in outcome["printed"].splitlines() + warned]


def _same_line(mine: str, other: str) -> bool:
    if NUMBER.sub("0", mine) != NUMBER.sub("0", other):
        return False
    pairs = zip(map(float, NUMBER.findall(mine)), map(float, NUMBER.findall(other)))
    return all(abs(a - b) <= DIGITS * max(1.0, abs(b)) for a, b in pairs)


def compare(path: Path, cut: Callable[[str], Iterator[Block]]) -> int:
    """Print a line for each block of a document, and return how many differ."""
    blocks = list(cut(path.read_text()))
    differing = 0
    for block, ours, theirs in zip(blocks, outcomes(blocks, backlight=True), outcomes(blocks, backlight=False)):
        problem = difference(ours, theirs)
        differing += problem is not None
        printed = len(theirs["printed"].splitlines())
        print(f"{path.name[:3]}  {block.name:10} {printed:3} lines  {'same' if problem is None else 'DIFFERS'}")
        if problem:
            print(f"     {problem}")
    return differing


def main(arguments: list[str]) -> int:
    """Compare all documents in the folder that the command line names, and return the exit code."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python tools/seeds.py FOLDER, the folder of the founding documents", file=sys.stderr)
        return 2
    found = {number: sorted(Path(arguments[0]).glob(f"{number}_*.txt")) for number in DOCUMENTS}
    missing = [number for number, paths in found.items() if not paths]
    if missing:
        print(f"no document {', '.join(missing)} in {arguments[0]}", file=sys.stderr)
        return 2
    differing = sum(compare(paths[0], DOCUMENTS[number]) for number, paths in found.items())
    print("all blocks give the same" if not differing else f"{differing} blocks differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
