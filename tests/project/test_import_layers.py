"""The layers hold: imports point down, none is inside a function, no module has a catch-all name such as utils.

Each rule looks through all files and names every one that breaks it; a file is parsed and walked once for all rules.
"""

import ast
import functools
from dataclasses import dataclass, field
from pathlib import Path

import backlight

ROOT = Path(backlight.__file__).parent
LAYERS = [
    {"devices", "dtypes", "errors", "formats", "layouts", "report", "return_types", "settings", "sizes", "system"}
    | {"types"},
    {"kernels"},
    {"engine", "dispatch"},
    {"codegen", "ops", "linalg", "special", "masked"},
    {"tensor", "fft", "signal", "sparse", "testing", "array_api", "torch_api"},
    {"autograd", "distributed", "transforms"},
    {"nn", "optim", "data"},
    {"amp", "func", "models", "adapters", "overrides", "training", "serialization", "utils", "profiler"}
    | {"distributions"},
    {"explain", "lens"},
    {"cli", "web"},
]
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
INDEPENDENT = {"nn", "optim", "data"}
CATCH_ALL_NAMES = {"utils", "helpers", "common", "base", "core", "misc"}
PYTORCH_NAMES = {"nn/utils", "utils"}  # folders named as PyTorch names them
TOP_LEVEL = {"__init__", "__main__"}
MAY_IMPORT_PYTORCH = {ROOT / "adapters" / name for name in ("torch_library.py", "torch_engine.py")}
FILES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(("backlight", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {name_of(path) for path in FILES}


def package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@dataclass
class Imports:
    """What one file imports, each with its line.

    Attributes:
        inner: modules of backlight, also those that a call names, to import them when they are first needed.
        named: all modules, as they are written.
        late: those of `named` that are imported in a function.
        lines: how many lines the file has.
    """

    inner: list[tuple[str, int]] = field(default_factory=list)
    named: list[tuple[str, int]] = field(default_factory=list)
    late: list[tuple[str, int]] = field(default_factory=list)
    lines: int = 0


@functools.cache
def imports_of(path: Path) -> Imports:
    """Return what a file imports."""
    text = path.read_text(encoding="utf-8")
    found = Imports(lines=len(text.splitlines()))
    _look(ast.parse(text), found, in_function=False, in_call=False)
    return found


def _look(node: ast.AST, found: Imports, in_function: bool, in_call: bool) -> None:
    """Add what a part of a file imports."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        named = written(node)
        found.named += named
        found.late += named if in_function else []
        found.inner += inner_of(node)
    elif isinstance(node, ast.Constant):
        if in_call and isinstance(node.value, str) and node.value in MODULES - {"backlight"}:
            found.inner.append((node.value, node.lineno))
    else:
        in_function = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        in_call = in_call or isinstance(node, ast.Call)
        for child in ast.iter_child_nodes(node):
            _look(child, found, in_function, in_call)


def written(node: ast.Import | ast.ImportFrom) -> list[tuple[str, int]]:
    """Return the modules that a statement names."""
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return [(name, node.lineno) for name in names]


def inner_of(node: ast.Import | ast.ImportFrom) -> list[tuple[str, int]]:
    """Return the modules of backlight that a statement imports."""
    found = [name for name, _ in written(node) if name.split(".")[0] == "backlight"]
    if isinstance(node, ast.ImportFrom) and found:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        found = [one if one in MODULES else node.module for one in inner]
    return [(name, node.lineno) for name in found]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def upward(path: Path) -> list[str]:
    """Return what is wrong with the imports of a file."""
    own = package_of(name_of(path))
    if own in TOP_LEVEL:
        return []
    if own not in LAYER:
        return [f"{shown(path)} is in no layer: add it to LAYERS and to docs/architecture.md"]
    wrong = []
    for module, line in imports_of(path).inner:
        package, where = package_of(module), f"{shown(path)}:{line}: {own}"
        if package not in LAYER:
            wrong.append(f"{where} imports the top package ({module})")
        elif LAYER[package] > LAYER[own]:
            wrong.append(f"{where} (layer {LAYER[own]}) imports {module} above it")
        elif {own, package} <= INDEPENDENT and own != package:
            wrong.append(f"{where} imports {module}; they must not import each other")
    return wrong


def test_all_files_are_looked_through():
    assert len(FILES) > 900
    assert sum(len(imports_of(path).inner) for path in FILES) > 4000


def test_imports_point_down():
    assert [wrong for path in FILES for wrong in upward(path)] == []


def test_no_import_of_the_project_is_inside_a_function():
    files = [path for path in FILES if path != ROOT / "__init__.py"]
    late = [(path, line) for path in files for name, line in imports_of(path).late if name.split(".")[0] == "backlight"]
    assert [f"{shown(path)}:{line}" for path, line in late] == []


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {}
    for path in FILES:
        if path.name == "__init__.py":
            continue
        names = {module for module, _ in imports_of(path).inner}
        graph[name_of(path)] = names & MODULES - {name_of(path)}
    done, trail = set(), []

    def visit(module):
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module in done:
            return
        trail.append(module)
        for other in graph.get(module, ()):
            visit(other)
        done.add(trail.pop())

    for module in graph:
        visit(module)


def test_no_folder_has_more_than_20_files():
    folders = {path.parent for path in FILES}
    assert not {folder for folder in folders if len(list(folder.glob("*.py"))) > 20}


def has_a_catch_all_name(path: Path) -> bool:
    folder = path.parent.relative_to(ROOT).as_posix()
    named_so = set() if folder in PYTORCH_NAMES else set(folder.split("/"))
    return bool(CATCH_ALL_NAMES & (named_so | {path.stem}))


def test_no_catch_all_names():
    assert [shown(path) for path in FILES if has_a_catch_all_name(path)] == []


def test_no_file_over_450_lines():
    long = [shown(path) for path in FILES if imports_of(path).lines > 450]
    assert long == [], "split them by family"


def test_only_the_adapter_imports_pytorch_and_only_on_first_use():
    wrong = []
    for path in FILES:
        found = imports_of(path)
        late = found.late if path in MAY_IMPORT_PYTORCH else []
        wrong += [
            f"{shown(path)}:{line} imports {name}"
            for name, line in found.named
            if name.split(".")[0] in ("torch", "transformers") and (name, line) not in late
        ]
    assert wrong == []
