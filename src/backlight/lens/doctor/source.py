"""The source around an instruction: its expression, its statement, how to rewrite them, what becomes of its result.

NOTE [A corrected line]
A line is rewritten by small edits of its own text, at positions that Python's own parser gives; the rest of it stays
letter for letter. Where the parser does not say exactly what stands there, nothing is written.
"""

import ast
import dataclasses
import dis
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, TracebackType

from backlight.lens.doctor.places import Instruction, Located, is_users, users_frames
from backlight.lens.records.record import Place
from backlight.system.fork_safety import cached_property

ENGINES = ("torch", "backlight")
NAMED = {"STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF"}
NAMELESS = {"STORE_SUBSCR", "STORE_ATTR"}
DROPPED = {"POP_TOP", "PRINT_EXPR"}
ON_THE_WAY = ("LOAD_", "SWAP", "COPY", "CACHE")  # to `things[i] = ...`
PRINTS = 1  # what CALL_INTRINSIC_1 is given where an interactive statement's value is printed


@lru_cache(maxsize=64)
def parsed(lines: tuple[str, ...]) -> ast.Module | None:
    """Return the tree of a file, each node with its `parent`; None if it is no Python."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    for outer in ast.walk(tree):
        for inner in ast.iter_child_nodes(outer):
            inner.parent = outer
    return tree


@lru_cache(maxsize=64)
def _by_span(tree: ast.Module) -> dict[tuple, ast.AST]:
    """Return a file's syntax by where it stands; of a statement that is nothing but a call, the call."""
    return {span(node): node for node in ast.walk(tree)}


Edit = tuple[int, int, int, str]  # line, first column, last column, new text
Position = tuple[int | None, int | None, int | None, int | None]  # line, last line, column, end column


@dataclass(frozen=True)
class Spot:
    """A piece of a user's program: what one instruction does.

    Args:
        file: its file.
        function: in which function.
        position: where it stands, as code objects say it.
        frame: the frame that runs it, while there is one: what names stand for can be looked up in it.
    """

    file: str
    function: str
    position: Position
    frame: FrameType | None = None

    def without_frame(self) -> "Spot":
        """Return it without the frame, to be kept."""
        return dataclasses.replace(self, frame=None)

    @property
    def line(self) -> int:
        """Its first line."""
        return self.position[0]

    @property
    def place(self) -> Place:
        """Its line, as findings show it."""
        return Place(self.file, self.line, self.function, linecache.getline(self.file, self.line).strip())

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """All lines of its file."""
        return tuple(linecache.getlines(self.file))

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree of its file."""
        return parsed(self.lines) if self.lines else None

    @cached_property
    def expression(self) -> ast.AST | None:
        """The syntax that this instruction is the work of; None if the source is not known."""
        if self.tree is None or None in self.position:
            return None
        return _by_span(self.tree).get(self.position)

    @property
    def call(self) -> ast.Call | None:
        """The call that this instruction makes, if it makes one."""
        return self.expression if isinstance(self.expression, ast.Call) else None

    @cached_property
    def statement(self) -> ast.stmt | None:
        """The statement that it is in."""
        node = self.expression
        while node is not None and not isinstance(node, ast.stmt):
            node = getattr(node, "parent", None)
        return node

    def around(self, kind: type) -> Iterator[ast.AST]:
        """Give the syntax of a kind that stands around it, nearest first."""
        node = self.expression
        while node is not None:
            if isinstance(node, kind):
                yield node
            node = getattr(node, "parent", None)

    @property
    def scope(self) -> ast.AST | None:
        """The function around it, or its file."""
        return next(self.around(ast.FunctionDef), self.tree)

    def at(self, node: ast.AST) -> "Spot":
        """Return another piece of syntax of its function."""
        return Spot(self.file, self.function, span(node))

    def text(self, node: ast.AST) -> str:
        """Return the text of a piece of syntax."""
        return ast.get_source_segment("".join(self.lines), node) or ""

    def value(self, node: ast.AST):
        """Return what `name` or `name.attribute` stands for where this runs; None if that is not known."""
        if self.frame is None or spelled(node) is None:
            return None
        if isinstance(node, ast.Attribute):  # looked up where that runs no code of the program's
            return getattr(self.value(node.value), "__dict__", {}).get(node.attr)
        return self.frame.f_locals.get(node.id, self.frame.f_globals.get(node.id))

    def edited(self, *edits: Edit | None) -> str | None:
        """Return the lines of the statement with edits made; None if one of them is."""
        if self.statement is None or not is_users(self.file) or None in edits:
            return None
        first, last = self.statement.lineno, self.statement.end_lineno
        if isinstance(self.statement, (ast.With, ast.For, ast.While, ast.If, ast.FunctionDef, ast.ClassDef)):
            last = first
        lines = [self.lines[number - 1].encode() for number in range(first, last + 1)]
        for number, start, end, new in sorted(edits, reverse=True):
            if not first <= number <= last:
                return None
            line = lines[number - first]
            lines[number - first] = line[:start] + new.encode() + line[end:]
        text = b"".join(lines).decode().strip()
        return text if parses(text) else None

    @property
    def torch(self) -> str | None:
        """What its file calls the engine: the name in `import torch` or `import backlight as torch`."""
        if self.tree is None:
            return None
        for node in ast.walk(self.tree):
            for alias in node.names if isinstance(node, ast.Import) else ():
                if alias.name in ENGINES:
                    return alias.asname or alias.name
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return next((name for name in ENGINES if name in used), None)


def parses(text: str) -> bool:
    """Return whether lines are Python: statements, or the head of a block."""
    try:
        ast.parse(text if not text.endswith(":") else f"{text} pass")
    except SyntaxError:
        return False
    return True


def spelled(node: ast.AST) -> str | None:
    """Return a name or a dotted name, `self.w`, as it is written; None for any other expression."""
    if isinstance(node, ast.Attribute):
        owner = spelled(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def assignments(scope: ast.AST, name: str) -> list[ast.Assign]:
    """Return the statements of a scope that begin `name = ...`."""
    return [one for one in ast.walk(scope) if isinstance(one, ast.Assign) and spelled(one.targets[0]) == name]


def span(node: ast.AST) -> tuple[int, int, int, int] | None:
    """Return where a piece of syntax stands, as code objects say it: line, last line, column, end column."""
    if not hasattr(node, "lineno"):
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def spot_of(event: Located, frame: FrameType | None = None) -> Spot:
    """Return the piece of the program at which something happened."""
    code = event.code
    position = next(islice(code.co_positions(), event.lasti // 2, None), (None,) * 4)
    line = position[0] or code.co_firstlineno
    return Spot(code.co_filename, code.co_name, (line, *position[1:]), frame)


def spot_of_traceback(trace: TracebackType | None) -> Spot | None:
    """Return the user's innermost instruction that an exception passed; the innermost of all if none is the user's."""
    found = last = None
    while trace is not None:
        last = trace
        if is_users(trace.tb_frame.f_code.co_filename):
            found = last
        trace = trace.tb_next
    trace = found or last
    return None if trace is None else spot_of(Instruction(trace.tb_frame.f_code, trace.tb_lasti), trace.tb_frame)


def spot_of_frame(frame: FrameType | None) -> Spot | None:
    """Return the user's innermost instruction that is running, from `frame` outwards; None if none is the user's."""
    user = next(users_frames(frame), None)
    return None if user is None else spot_of(Instruction(user.f_code, user.f_lasti), user)


def assignment_to(name: str | None, file: str, line: int, function: str = "") -> Spot | None:
    """Return the statement `name = ...` that stands at a line of a file; for None, the one that assigns to any name."""
    lines = tuple(linecache.getlines(file))
    for node in ast.walk(parsed(lines) or ast.Module()):
        targets = node.targets if isinstance(node, ast.Assign) else ()
        target = spelled(targets[0]) if len(targets) == 1 else None
        if target is not None and name in (None, target) and node.lineno <= line <= node.end_lineno:
            return Spot(file, function, span(node))
    return None


def _after(code: CodeType, lasti: int):
    return (one for one in dis.get_instructions(code) if one.offset > lasti and one.opname != "CACHE")


@lru_cache(maxsize=4096)
def stored_in(code: CodeType, lasti: int) -> str | None:
    """Return the name that the result of an instruction is stored under, "" for a place without a name, None if not."""
    for one in islice(_after(code, lasti), 4):
        if one.opname in NAMED:
            return one.argval
        if one.opname in NAMELESS:
            return ""
        if not one.opname.startswith(ON_THE_WAY):
            return None
    return None


@lru_cache(maxsize=4096)
def is_dropped(code: CodeType, lasti: int) -> bool:
    """Return whether the result of the call at an instruction is dropped: a statement of its own."""
    after = next(_after(code, lasti), None)
    printed = after is not None and after.opname == "CALL_INTRINSIC_1" and after.arg == PRINTS
    return after is not None and (after.opname in DROPPED or printed)
