"""Build backlight against the lowest NumPy that it declares and the newest, and run each build with both.

    python tools/lowest_numpy.py            # in a temporary folder; takes two builds
    python tools/lowest_numpy.py --keep FOLDER

Each NumPy gets a virtual environment of its own. A build that does not load, or gives other numbers than the NumPy
references, ends this with exit code 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ("src", "csrc", "setup.py", "pyproject.toml", "README.md")
CHECK = """
import json, sys
import backlight as b
from backlight.kernels.native import compiled, core, description

b.manual_seed(0)
x = b.randn(64, 48, dtype=b.float64, requires_grad=True)
w = b.rand(32, 48, dtype=b.float64, requires_grad=True)
F = b.nn.functional
hidden = F.gelu(F.linear(x, w)).softmax(-1) * 3 - 1
picked = hidden.index_select(0, b.tensor([1, 5, 5])).sum() + F.layer_norm(hidden, (32,)).square().sum()
loss = F.cross_entropy(hidden, b.arange(64) % 32) + picked + F.max_pool2d(hidden[None, None], 2).sum() + x.exp().sum()
loss.backward()
b.optim.AdamW([x, w], lr=0.1).step()
numbers = [loss, x.grad.sum(), w.grad.abs().sum(), x.sum(), w.cumsum(0).sum(), b.randperm(9).float().sum(), x[0, 0] * 2]
print(json.dumps({
    "kernels": description(), "native": compiled is not None and core is not None,
    "file": compiled and compiled.__file__, "numbers": [one.item() for one in numbers],
}))
"""


def lowest() -> str:
    """Return the requirement of exactly the lowest NumPy that pyproject.toml declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (version,) = (found[1] for one in declared if (found := re.fullmatch(r"numpy>=([\d.]+)", one)))
    return f"numpy=={version}"


def environment_with(numpy: str, folder: Path) -> Path:
    """Make a virtual environment with a NumPy and what backlight needs beside it; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([python, *options, numpy, "setuptools>=77", "ml_dtypes>=0.5", "safetensors>=0.4"], check=True)
    return python


def built_with(python: Path, folder: Path) -> Path:
    """Build the compiled module in a copy of the sources; return the folder to import from."""
    folder.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("_native*", "__pycache__"))
        else:
            shutil.copy(ROOT / part, folder / part)
    subprocess.run([python, "-W", "ignore", "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True)
    return folder / "src"


def checked(python: Path, source: Path, **variables: str) -> dict:
    """Return what the check prints, run with an interpreter's NumPy."""
    unset = {"BACKLIGHT_KERNELS", "BACKLIGHT_CORE", "BACKLIGHT_MEMORY", "BACKLIGHT_NUM_THREADS"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [python, "-c", f"import numpy; print(numpy.__version__)\n{CHECK}"],
        env=kept | {"PYTHONPATH": str(source)} | variables,
        cwd=source,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    version, found = done.stdout.splitlines()
    return {"numpy": version, **json.loads(found)}


def same(found: list[float], expected: list[float]) -> bool:
    """Tell whether numbers agree but for the last digits."""
    return all(abs(one - other) <= 1e-9 * max(1.0, abs(other)) for one, other in zip(found, expected, strict=True))


def problems_in(folder: Path) -> list[str]:
    """Build with both, run with both; return a line for each that fails."""
    pythons = {name: environment_with(name, folder / f"with {name}") for name in (lowest(), "numpy")}
    found = []
    for build, python in pythons.items():
        source = built_with(python, folder / f"built with {build}")
        for run in pythons.values():
            native = checked(run, source)
            line = f"built with {build}, run with NumPy {native['numpy']}: {native['kernels']}"
            print(line, flush=True)
            expected = checked(run, source, BACKLIGHT_KERNELS="numpy")["numbers"]
            if not native["native"] or Path(native["file"]).parent.parent.parent != source:
                found.append(f"{line}: not native")
            elif not same(native["numbers"], expected):
                found.append(f"{line}: {native['numbers']}, and the references give {expected}")
    return found


def main() -> int:
    """Build, run and compare; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keep", type=Path, help="a folder, not there yet, to work in and leave")
    keep = parser.parse_args().keep
    if keep is not None:
        keep.mkdir(parents=True)
        found = problems_in(keep.resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = problems_in(Path(folder).resolve())
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
