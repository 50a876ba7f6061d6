"""Run all benchmarks, each in a process of its own, and write what they measured to benchmarks/results.json.

    python benchmarks/run_all.py [--quick] [--suite tiny] [--keep] [--other-machine]

`--suite` runs the ones that are named and leaves the others' rows in the file as they are. `--keep` also writes the
figures that `bench-check` compares with to benchmarks/kept.json; it refuses rows that were measured amid noise.
`--other-machine` writes to results_other_machine.json instead: the same work on another kind of processor.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
RESULTS, OTHER, KEPT = HERE / "results.json", HERE / "results_other_machine.json", HERE / "kept.json"
SUITES = {
    "tiny": "tiny_ops.py",
    "elementwise": "elementwise.py",
    "training": "training_steps.py",
    "epoch": "fashion_mnist_epoch.py",
    "encoder": "encoder.py",
    "saliency": "saliency.py",
    "explained_ranking": "explained_ranking.py",
    "double_backward": "double_backward.py",
    "growth": "growth.py",
    "import": "import_time.py",
    "lens_pictures": "lens_pictures.py",
    "lens_recorder": "lens_recorder.py",
    "lens_overhead": "lens_overhead.py",
    "lens_doctor": "lens_doctor.py",
    "anomaly": "anomaly.py",
    "func": "func.py",
    "rare_ops": "rare_ops.py",
}
LIBRARIES = ("backlight", "numpy", "torch", "transformers", "jax", "torchviz", "torchview", "torchlens")


def run_suite(suite: str, arguments: Sequence[str] = ()) -> dict:
    """Run a suite's script and return what it wrote: {suite, title, rows}."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        subprocess.run([sys.executable, str(HERE / SUITES[suite]), "--json", str(file), *arguments], check=True)
        return json.loads(file.read_text())


def machine() -> dict:
    """Return what the figures depend on: processor, cores, versions, kernels."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES if importlib.util.find_spec(name)},
        "kernels": _kernels(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def _kernels() -> str:
    return importlib.import_module("backlight.kernels.native").description()


def figures(row: dict) -> dict[str, float]:
    """Return what is kept of a row that has a bar: its time and memory as ratios to PyTorch, to its best, too."""
    found = {"time": row["ratios"]["torch"][1]} if "torch" in row["ratios"] else {}
    for bar in row["bars"]:
        if bar["reached"] is None or bar["of"] == "extra" or not all(one.startswith("torch") for one in bar["against"]):
            continue
        if bar["of"] == "memory":
            found["memory"] = bar["reached"]
        elif bar["against"] != ["torch"]:
            found["time against the best"] = bar["reached"]
    return found


def key_of(row: dict) -> str:
    """Return a row's name in kept.json."""
    return f"{row['suite']} / {row['row']}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of each; writes nothing")
    parser.add_argument("--suite", action="append", choices=SUITES, help="run this one only; may be repeated")
    parser.add_argument("--keep", action="store_true", help="write the figures that bench-check compares with")
    parser.add_argument("--other-machine", action="store_true", help="write to results_other_machine.json")
    options = parser.parse_args(argv)
    began = time.perf_counter()
    suites, failed = {}, []
    for name in options.suite or SUITES:
        print(f"\n== {name}", flush=True)
        try:
            suites[name] = run_suite(name, ["--quick"] if options.quick else [])
        except subprocess.CalledProcessError as problem:
            failed.append(name)
            print(f"{name} failed with {problem.returncode}, and is left out", flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s in all{', without ' if failed else ''}{', '.join(failed)}")
    if options.quick or not suites:
        return int(bool(failed))
    file = OTHER if options.other_machine else RESULTS
    before = json.loads(file.read_text())["suites"] if file.exists() else {}
    found = {name: suites.get(name, before.get(name)) for name in SUITES if name in suites or name in before}
    date = time.strftime("%Y-%m-%d", time.gmtime())
    file.write_text(json.dumps({"date": date, "machine": machine(), "suites": found}, indent=1) + "\n")
    noisy = keep(suites) if options.keep else 0
    return int(bool(failed or noisy))


def keep(suites: dict) -> int:
    """Write the figures of rows with a bar to kept.json, but for noisy ones; return how many were."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    noisy = 0
    for row in (row for suite in suites.values() for row in suite["rows"] if row["bars"]):
        if row["noisy"]:
            print(f"{key_of(row)}: noisy, its kept figures stay as they are")
            noisy += 1
        else:
            kept[key_of(row)] = {name: round(value, 3) for name, value in figures(row).items()}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    return noisy


if __name__ == "__main__":
    sys.exit(main())
