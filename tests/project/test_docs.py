"""The documentation is true: every Python block of README and docs runs, and doctest outputs match."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from paths import ROOT

import backlight

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(backlight.__path__, "backlight.") if not name.endswith("__main__")
)


def source_of(name: str) -> str:
    """Return a module's text; a compiled module has none."""
    path = ROOT.joinpath("src", *name.split("."))
    files = path / "__init__.py", path.with_suffix(".py")
    return "".join(one.read_text(encoding="utf-8") for one in files if one.is_file())


WITH_EXAMPLES = [name for name in MODULES if ">>>" in source_of(name)]


def blocks_of(page: Path) -> list[str]:
    return [block for block in BLOCK.findall(page.read_text()) if not block.startswith("@op")]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.name)
def test_python_blocks_of_a_page_run_and_print_what_is_said(page, tmp_path, monkeypatch, capsys):
    """Blocks of one page share their names; a comment `# prints: …` after a print must be what it printed."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        exec(compile(block, str(page), "exec"), names)
        printed = capsys.readouterr().out
        for said in re.findall(r"# prints: (.*)", block):
            assert said.strip() in printed, f"{page.name}: {said!r} was not printed; got {printed!r}"


def examples_made_of(name: str) -> list[str]:
    """Import a module; return what of its own has an example in a docstring that is not in its text."""
    module = importlib.import_module(name)
    own = [one for one in vars(module).values() if getattr(one, "__module__", None) == name]
    parts = [part for one in own if isinstance(one, type) for part in vars(one).values()]
    parts = [part for part in parts if getattr(part, "__module__", name) == name]
    written = [one for one in (module, *own, *parts) if isinstance(one, (ModuleType, type, FunctionType, property))]
    return [f"{name}: {one!r}" for one in written if ">>>" in (one.__doc__ or "")]


def test_every_module_can_be_imported_and_examples_are_where_they_are_looked_for():
    made = [one for name in MODULES if name not in WITH_EXAMPLES for one in examples_made_of(name)]
    assert made == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_doctests(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0 < tried


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_notes_are_in_the_files_that_are_named_for_them():
    package, native = ROOT / "src" / "backlight", ROOT / "csrc"
    missing = []
    for file in [*package.rglob("*.py"), *native.rglob("*.[ch]")]:
        text = re.sub(r"\n\s*(?:#|\*)?\s*", " ", file.read_text(encoding="utf-8"))
        for note, path in re.findall(r"NOTE \[([^\]]+)\] in ([\w/]+\.(?:py|c|h))", text):
            named = [package / path, native / path, ROOT / path, file.parent / path, *native.glob(f"*/{path}")]
            there = [one for one in named if one.is_file() and f"[{note}]" in one.read_text(encoding="utf-8")]
            missing += [] if there else [(file.name, note, path)]
    assert missing == []
