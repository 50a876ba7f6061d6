"""Builds the C code with a sanitizer of GCC into a folder of its own and runs tests, or a program, on that build.

    python tools/sanitize.py address tests/test_native.py tests/test_core.py
    python tools/sanitize.py --program thread tests/soak/races.py --seconds 60 --seed 1
    python tools/sanitize.py --build-only undefined

What stands after the sanitizer's name goes to pytest, or, with --program, to Python. The build is in build/SANITIZER;
the module in src stays as it is. Exit code: that of the tests, or 66 if the sanitizer reported something.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPRESSIONS = ROOT / "tests" / "tsan_suppressions.txt"
REPORTED = 66  # the exit code of a process whose sanitizer reported something
# What each sanitizer's run time is given. Address: Python does not free all of its memory at its end, and GCC 12's fake
# stack misaligns stores of vectors. Thread: tests fork while workers run.
OPTIONS = {
    "address": ("ASAN_OPTIONS", f"detect_leaks=0:detect_stack_use_after_return=0:exitcode={REPORTED}"),
    "thread": ("TSAN_OPTIONS", f"exitcode={REPORTED}:suppressions={SUPPRESSIONS}:history_size=5:die_after_fork=0"),
    "undefined": ("UBSAN_OPTIONS", f"print_stacktrace=1:halt_on_error=1:exitcode={REPORTED}"),
}
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so", "undefined": "libubsan.so"}
VARIABLES = ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LD_PRELOAD")


def build(sanitizer: str) -> Path:
    """Build the package with the sanitizer; return the folder to import it from."""
    folder = ROOT / "build" / sanitizer
    modules = folder / "lib" / "backlight" / "kernels"
    newest = max(path.stat().st_mtime for path in (ROOT / "setup.py", *(ROOT / "csrc").iterdir()))
    current = any(path.stat().st_mtime > newest for path in modules.glob("_native*"))
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", "build_py" if current else "build"]
    command += ["--build-lib", str(folder / "lib")] + ([] if current else ["--build-temp", str(folder / "temp")])
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "BACKLIGHT_SANITIZE": sanitizer})
    if not list(modules.glob("_native*")):
        raise SystemExit(f"the C code could not be compiled with -fsanitize={sanitizer}: see the messages above")
    return folder / "lib"


def preloaded(sanitizer: str) -> str:
    """Return the sanitizer's run time library, which must be loaded before Python's own."""
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={LIBRARIES[sanitizer]}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(found):
        raise SystemExit(f"{command[0]} has no {LIBRARIES[sanitizer]}: install GCC with its sanitizers")
    return found


def environment(sanitizer: str, library: Path) -> dict[str, str]:
    """Return the variables for a process on the build: the run time library, its options, where backlight is."""
    variable, options = OPTIONS[sanitizer]
    own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    own[variable] = ":".join(filter(None, (options, os.environ.get(variable))))
    own["LD_PRELOAD"] = preloaded(sanitizer)
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


def main() -> int:
    """Build, then run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sanitizer", choices=OPTIONS)
    parser.add_argument("--build-only", action="store_true", help="build and load it, run nothing")
    parser.add_argument("--program", action="store_true", help="run a Python program, not tests")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="tests and options of pytest, or a program and its own")
    options = parser.parse_args()
    library = build(options.sanitizer)
    variables = environment(options.sanitizer, library)
    check(variables, library)
    if options.build_only:
        return 0
    command = [sys.executable]
    if not options.program:
        command += ["-m", "pytest", "-p", "no:cacheprovider", "-o", f"pythonpath={library} tests examples"]
    return subprocess.run(command + options.rest, env=variables, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
