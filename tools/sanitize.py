"""Builds the C code with a sanitizer of GCC into a folder of its own and runs tests, or a program, on that build.

    python tools/sanitize.py address
    python tools/sanitize.py --short thread
    python tools/sanitize.py address tests/kernels/test_native.py tests/engine/test_core.py
    python tools/sanitize.py --program thread tests/soak/races.py --seconds 60 --seed 1
    python tools/sanitize.py --build-only undefined

What stands after the sanitizer's name goes to pytest, or, with --program, to Python; if nothing does, the tests and
random programs of SELECTIONS run. The build is in build/SANITIZER; the module in src stays as it is. Exit code: that of
the tests, or 66 if the sanitizer reported something.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPRESSIONS = ROOT / "tests" / "data" / "tsan_suppressions.txt"
REPORTED = 66  # the exit code of a process whose sanitizer reported something
# What each sanitizer's run time is given. Address: Python does not free all of its memory at its end, and GCC 12's fake
# stack misaligns stores of vectors. Thread: tests fork while workers run. Both: tests ask for more memory than there
# is.
OPTIONS = {
    "address": ("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1"),
    "thread": (
        "TSAN_OPTIONS",
        f"suppressions={SUPPRESSIONS}:history_size=5:die_after_fork=0:allocator_may_return_null=1",
    ),
    "undefined": ("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1"),
}
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so", "undefined": "libubsan.so"}
VARIABLES = ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LD_PRELOAD")


# Tests that a sanitizer cannot run.
FORKS = (  # ThreadSanitizer does not follow a child that starts threads after a process of several threads forked
    "tests/kernels/test_pool.py::test_a_forked_child_computes_after_its_parent_used_threads",
    "tests/kernels/test_pool.py::test_a_child_that_is_forked_while_threads_compute_does_not_hang",
)
MEASURED = (  # of memory in use, where a sanitizer keeps what was freed and needs some for itself
    "tests/engine/test_core.py::test_memory_stays_flat_over_many_steps",
    "tests/kernels/test_kept_memory.py::test_no_more_is_held_than_was_in_use_at_once",
)
LEFT_OUT = {"address": MEASURED, "thread": FORKS + MEASURED, "undefined": MEASURED[1:]}


@dataclass(frozen=True)
class Selection:
    """What runs if the command line names nothing: tests, and so many random programs against PyTorch."""

    tests: tuple[str, ...]
    programs: int = 0


NATIVE = ("arithmetic", "distances", "draws", "pointwise", "pooling", "products", "ranks", "recurrence", "rows")
NATIVE += ("slices", "steps", "summaries", "windows")
NATIVE_TESTS = ("tests/kernels/test_native.py", *(f"tests/kernels/test_native_{name}.py" for name in NATIVE))
OWN_TESTS = tuple(
    f"tests/{name}.py" for name in ("engine/test_core", "kernels/test_pool", "system/test_races", "dispatch/test_sizes")
)
OWN_TESTS += ("tests/engine/test_slots.py::test_named_programs_end_in_exceptions",)
KEPT_MEMORY = "tests/kernels/test_kept_memory.py"  # runs with backlight's own store of freed memory, all else without
THREADED = tuple(
    f"tests/{name}.py" for name in ("kernels/test_pool", "engine/test_threads_and_graphs", "kernels/test_native_slices")
)
SELECTIONS = {
    "address": Selection(NATIVE_TESTS + OWN_TESTS, 1000),
    "thread": Selection(
        THREADED
        + ("tests/engine/test_core.py", "tests/kernels/test_native_rows.py", "tests/kernels/test_native_ranks.py")
    ),
    "undefined": Selection((*NATIVE_TESTS, "tests/engine/test_core.py", "tests/dispatch/test_sizes.py"), 500),
}
SHORT = {  # five minutes, for continuous integration
    "address": Selection(("tests/kernels/test_native_slices.py", "tests/engine/test_core.py"), 300),
    "thread": Selection(THREADED),
    "undefined": Selection(("tests/kernels/test_native_slices.py", "tests/engine/test_core.py"), 300),
}


def build(sanitizer: str) -> Path:
    """Build the package with the sanitizer; return the folder to import it from."""
    folder = ROOT / "build" / sanitizer
    modules = folder / "lib" / "backlight" / "kernels"
    newest = max(path.stat().st_mtime for path in (ROOT / "setup.py", *(ROOT / "csrc").glob("*/*")))
    current = any(path.stat().st_mtime > newest for path in modules.glob("_native*"))
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", "build_py" if current else "build"]
    command += ["--build-lib", str(folder / "lib")] + ([] if current else ["--build-temp", str(folder / "temp")])
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "BACKLIGHT_SANITIZE": sanitizer})
    if not list(modules.glob("_native*")):
        raise SystemExit(f"the C code could not be compiled with -fsanitize={sanitizer}: see the messages above")
    return folder / "lib"


def preloaded(name: str) -> str:
    """Return the path of a library that must be loaded before Python's own."""
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={name}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(found):
        raise SystemExit(f"{command[0]} has no {name}: install GCC with its sanitizers")
    return found


def environment(sanitizer: str, library: Path) -> dict[str, str]:
    """Return the variables for a process on the build: the run time library, its options, where backlight is."""
    variable, options = OPTIONS[sanitizer]
    own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    own[variable] = ":".join(filter(None, (options, f"exitcode={REPORTED}", os.environ.get(variable))))
    # The sanitizer looks for what throws C++ exceptions when it starts; PyTorch, which throws them, comes later.
    own["LD_PRELOAD"] = " ".join((preloaded(LIBRARIES[sanitizer]), preloaded("libstdc++.so.6")))
    own["PYTHONPATH"] = os.pathsep.join((str(library), str(ROOT / "tests"), str(ROOT / "examples")))
    # A freed block must go back to the allocator that the sanitizer watches, not to Python's arenas or our own store.
    own["PYTHONMALLOC"] = "malloc"
    own.setdefault("BACKLIGHT_MEMORY", "system")
    own.setdefault("HF_HUB_OFFLINE", "1")
    return own


def check(variables: dict[str, str], library: Path) -> None:
    """Stop unless Python loads the build and its native code."""
    program = "from backlight.kernels.native import compiled, description; print(compiled.__file__, description())"
    said = subprocess.run([sys.executable, "-c", program], env=variables, cwd=ROOT, capture_output=True, text=True)
    if said.returncode or not said.stdout.startswith(str(library)) or " native" not in said.stdout:
        raise SystemExit(f"the build does not load: {said.stdout}{said.stderr}")
    print(said.stdout.strip(), flush=True)


def commands(sanitizer: str, library: Path, selection: Selection) -> list[tuple[list[str], dict[str, str]]]:
    """Return the commands that run a selection, each with the variables of its own."""
    found = [([*pytest(sanitizer, library), *selection.tests], {})]
    found.append(([*pytest(sanitizer, library), KEPT_MEMORY], {"BACKLIGHT_MEMORY": "kept"}))
    if selection.programs:
        found.append(([sys.executable, "tests/fuzz.py", "--programs", str(selection.programs)], {}))
    return found


def pytest(sanitizer: str, library: Path) -> list[str]:
    """Return how pytest is started; it lets through what the sanitizer writes."""
    command = [sys.executable, "-m", "pytest", "-q", "--capture=sys", "-p", "no:cacheprovider"]
    command += [f"--deselect={name}" for name in LEFT_OUT[sanitizer]]
    return [*command, "-o", f"pythonpath={library} tests tests/support examples"]


def main() -> int:
    """Build, then run what the command line names, or the selection; return the first exit code that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sanitizer", choices=OPTIONS)
    parser.add_argument("--build-only", action="store_true", help="build and load it, run nothing")
    parser.add_argument("--short", action="store_true", help="run about five minutes of what runs if nothing is named")
    parser.add_argument("--program", action="store_true", help="run a Python program, not tests")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="tests and options of pytest, or a program and its own")
    options = parser.parse_args()
    library = build(options.sanitizer)
    variables = environment(options.sanitizer, library)
    check(variables, library)
    if options.build_only:
        return 0
    if options.program:
        run = [([sys.executable, *options.rest], {})]
    elif options.rest:
        run = [([*pytest(options.sanitizer, library), *options.rest], {})]
    else:
        run = commands(options.sanitizer, library, (SHORT if options.short else SELECTIONS)[options.sanitizer])
    codes = [subprocess.run(command, env={**variables, **own}, cwd=ROOT).returncode for command, own in run]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
