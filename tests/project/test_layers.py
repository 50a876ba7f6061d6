"""The layers hold: imports point down, none is inside a function, no module has a catch-all name such as utils."""

import ast
from pathlib import Path

import pytest

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


def imports_of(tree) -> list[tuple[str, ast.AST]]:
    """Return the backlight modules that a file imports."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names if alias.name.split(".")[0] == "backlight"]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "backlight":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append((inner if inner in MODULES else node.module, node))
    return found


def imports_later_of(tree) -> list[tuple[str, ast.AST]]:
    """Return the modules that a file names in a call, to import them when they are first needed."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    words = [one for call in calls for one in ast.walk(call) if isinstance(one, ast.Constant)]
    return [
        (word.value, word) for word in words if isinstance(word.value, str) and word.value in MODULES - {"backlight"}
    ]


def in_function(tree) -> list[ast.AST]:
    return [
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(outer)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    own = package_of(name_of(path))
    if own in TOP_LEVEL:
        return
    assert own in LAYER, f"{path.name} is in no layer: add it to LAYERS and to docs/architecture.md"
    tree = ast.parse(path.read_text())
    for module, node in imports_of(tree) + imports_later_of(tree):
        package = package_of(module)
        assert package in LAYER, f"line {node.lineno}: {own} imports the top package ({module})"
        assert LAYER[package] <= LAYER[own], f"line {node.lineno}: {own} (layer {LAYER[own]}) imports {module} above it"
        beside = {own, package} <= INDEPENDENT and own != package
        assert not beside, f"line {node.lineno}: {own} imports {module}; they must not import each other"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_of_the_project_is_inside_a_function(path):
    if path.name == "__init__.py" and path.parent == ROOT:
        return
    for node in in_function(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        assert not any(name.split(".")[0] == "backlight" for name in names), f"line {node.lineno}"


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {}
    for path in FILES:
        if path.name == "__init__.py":
            continue
        tree = ast.parse(path.read_text())
        names = {module for module, _ in imports_of(tree) + imports_later_of(tree)}
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_catch_all_names_and_no_file_over_450_lines(path):
    folder = path.parent.relative_to(ROOT).as_posix()
    assert path.stem not in CATCH_ALL_NAMES
    assert folder in PYTORCH_NAMES or not CATCH_ALL_NAMES & set(folder.split("/"))
    assert len(path.read_text().splitlines()) <= 450, "split it by family"


def test_only_the_adapter_imports_pytorch_and_only_on_first_use():
    for path in FILES:
        tree = ast.parse(path.read_text())
        late = in_function(tree) if path in MAY_IMPORT_PYTORCH else []
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                allowed = node in late or name.split(".")[0] not in ("torch", "transformers")
                assert allowed, f"{path}:{node.lineno} imports {name}"
