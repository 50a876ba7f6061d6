"""Magics for Jupyter and IPython: `%load_ext backlight`, then `%%doctor`, `%doctor` and `%%graph`."""

import argparse
import ast
import importlib
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from types import CodeType, FunctionType

from backlight.cli.main import Parser, notice
from backlight.cli.programs.command_line import own_options
from backlight.errors import InputError
from backlight.lens.doctor.doctor_block import DoctorBlock
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.report import Report
from backlight.lens.doctor.step_limit import StepLimit, StepsReachedError
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import WAYS, picture_of
from backlight.lens.pictures.text import tree
from backlight.lens.records.record import Record
from backlight.lens.records.watching import VALUES, watch

HEIGHT = 640  # of a graph in a notebook, in pixels


def load_ipython_extension(shell) -> None:
    """Add the magics; `%load_ext backlight` calls it."""
    magics = Magics(shell)
    shell.register_magic_function(magics.doctor, magic_kind="line_cell", magic_name="doctor")
    shell.register_magic_function(magics.graph, magic_kind="line_cell", magic_name="graph")


class Shown:
    """What a cell displays: as HTML in a notebook, as text in a terminal."""

    def __init__(self, html: str, text: str):
        self.html, self.text = html, text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


class Magics:
    """The magics of one shell."""

    def __init__(self, shell):
        self.shell = shell

    def doctor(self, line: str, cell: str | None = None) -> object:
        """Run a statement, or the cell, and show its mistakes with gradients.

        %doctor [--strict] [--notes] [--steps N] statement
        %%doctor [--strict] [--notes] [--steps N]
        """
        given = _given(_doctor_options(), line, cell)
        if given is None:
            return None
        try:
            limit = None if given.steps is None else StepLimit(given.steps)
        except InputError as problem:
            return notice(str(problem))
        block = DoctorBlock(strict=given.strict, notes=given.notes, engines=None, annotate=False, limit=limit)
        try:
            return self._run(given.code, block, cell is not None)
        except StepsReachedError:
            print(f"stopped after {counted(given.steps, 'optimizer step')}")
        finally:
            if block.report is not None:
                self._display(self._named_by_cells(block.report))

    def graph(self, line: str, cell: str | None = None) -> object:
        """Run a statement, or the cell, and show the graph of its backward.

        %graph [--by WAY] [--values KIND] [--backward N] statement
        %%graph [--by WAY] [--values KIND] [--backward N]
        """
        given = _given(_graph_options(), line, cell)
        if given is None:
            return None
        watched = watch(values=given.values, title="", names=True)
        try:
            return self._run(given.code, watched, cell is not None)
        finally:
            if watched.recordings and watched.record.nodes:
                self._display(_graph_of(watched.record, given))
            else:
                notice("nothing that requires grad was computed, so there is no graph")

    def _run(self, text: str, around: AbstractContextManager, below: bool) -> object:
        """Run code in the user's names; return the value of its last expression, which the cell then shows.

        Args:
            below: whether it stands below the magic's own line, which counts as a line of the cell.
        """
        text = "\n" * below + self.shell.transform_cell(text)
        number = len(self.shell.user_ns["In"]) - 1  # of the cell that runs; `execution_count` may be ahead by now
        name = self.shell.compile.cache(text, number, raw_code=text)
        tree = self.shell.transform_ast(ast.parse(text, name))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not text.rstrip().endswith(";"):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval", dont_inherit=True)
        body = compile(tree, name, "exec", dont_inherit=True)
        return FunctionType(_evaluate.__code__, self.shell.user_ns)(body, last, around)

    def _named_by_cells(self, report: Report) -> Shown:
        """Return a report that says `Cell In[3]` where a finding names the file that the kernel made for a cell."""
        html, text = report._repr_html_(), str(report)
        places = [place for found in report for place in (found.place, found.corrected_at) if place is not None]
        for file in {place.file for place in places}:
            label = self.shell.compile.format_code_name(file)
            if label is not None:
                for name in (file, Path(file).name):
                    html = html.replace(escape(name), " ".join(label))
                    text = text.replace(name, " ".join(label))
        return Shown(html, text)

    def _display(self, shown: Shown) -> None:
        importlib.import_module("IPython.display").display(shown)


def _evaluate(body: CodeType, last: CodeType | None, around: AbstractContextManager) -> object:
    """Run code inside a block; it is called with the user's names as its globals, where a watcher looks for names."""
    with around:
        exec(body, globals())
        return None if last is None else eval(last, globals())


def _given(parser: Parser, line: str, cell: str | None) -> argparse.Namespace | None:
    """Return the options, with the `code` to run; None if they cannot be used, which is said."""
    try:
        own, rest = own_options(line.split(), parser)
        given = parser.parse_args([*own, *(rest if cell is not None else ())])
        given.code = (line.split(None, len(own))[len(own) :] or [""])[0] if cell is None else cell
        if not given.code.strip():
            raise InputError(f"{parser.prog} must be given a statement to run, or a cell: %{parser.prog}")
    except (InputError, SystemExit) as problem:
        if isinstance(problem, InputError):
            notice(str(problem))
        return None
    return given


def _doctor_options() -> Parser:
    parser = Parser(prog="%doctor", description="Run code and show its mistakes with gradients.")
    parser.add_argument("--strict", action="store_true", help="also find writes that no engine counts, by fingerprints")
    parser.add_argument("--notes", action="store_true", help="also report what is legal and often misunderstood")
    parser.add_argument("--steps", type=int, metavar="N", help="stop after N steps of the optimizers")
    return parser


def _graph_options() -> Parser:
    parser = Parser(prog="%graph", description="Run code and show the graph of its backward.")
    parser.add_argument("--by", choices=WAYS, default=WAYS[0], help="how nodes are grouped; by default by module")
    parser.add_argument("--values", choices=VALUES, default=VALUES[0], help="what is kept of tensors")
    parser.add_argument("--backward", type=int, default=-1, metavar="N", help="show the gradients of backward N")
    return parser


def _graph_of(record: Record, given: argparse.Namespace) -> Shown:
    backward = given.backward - 1 if given.backward > 0 else given.backward
    page = page_of(record, by=given.by, backward=backward)
    frame = f'width="100%" height="{HEIGHT}" style="border:0" sandbox="allow-scripts allow-downloads"'
    text = tree(picture_of(record, by=given.by, backward=backward))
    return Shown(f'<iframe title="graph" {frame} srcdoc="{escape(page, quote=True)}"></iframe>', text)
