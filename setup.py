"""Builds the native kernels where a C compiler is there; without one backlight works on NumPy alone.

csrc/kernels/kernels.c is compiled once for each level of instruction set and each type; which level runs is chosen at
import.

The environment variable BACKLIGHT_SANITIZE (address, thread or undefined) builds with that sanitizer of GCC: see
tools/sanitize.py.
"""

import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

SOURCES = Path("csrc")
HEADERS = [str(SOURCES / folder) for folder in ("core", "bindings", "kernels", "simd")]
TYPES = {"f32": 32, "f64": 64}
ON_X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVELS = {  # name: bytes of a vector, what the compiler is told
    "v1": (16, []),
    **(
        {"v3": (32, ["-march=x86-64-v3"]), "v4": (64, ["-march=x86-64-v4", "-mprefer-vector-width=512"])}
        if ON_X86
        else {}
    ),
}
ON_WINDOWS = os.name == "nt"
FLAGS = [
    "-O2",
    "-g0",
    "-std=gnu11",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-pthread",
]
DECLARED = "-Werror=implicit-function-declaration"  # else the module is built, and does not load
if ON_WINDOWS:  # clang-cl takes clang's own options after /clang:
    FLAGS = ["/clang:" + flag for flag in FLAGS if flag != "-pthread"]
    LEVELS = {name: (width, ["/clang:" + flag for flag in flags]) for name, (width, flags) in LEVELS.items()}
MODULE_FLAGS = [] if ON_WINDOWS else ["-O2", "-g0", "-std=gnu11", "-pthread", DECLARED]
LINK_FLAGS = [] if ON_WINDOWS else ["-pthread", "-Wl,-s"] if sys.platform == "linux" else ["-pthread"]


def sanitized(flags: list[str], sanitizer: str) -> list[str]:
    """Return the flags with a sanitizer's in the place of those that optimise and strip."""
    if not sanitizer:
        return flags
    if sanitizer not in ("address", "thread", "undefined"):
        raise SystemExit(f"BACKLIGHT_SANITIZE must be address, thread or undefined, got {sanitizer}")
    kept = [flag for flag in flags if flag not in ("-O2", "-g0", "-Wl,-s")]
    if sanitizer == "undefined":  # also what Python's own flags define, and what GCC leaves out
        kept += ["-fno-wrapv", "-fsanitize=float-cast-overflow"]
    return [*kept, "-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}"]


FLAGS, MODULE_FLAGS, LINK_FLAGS = (
    sanitized(flags, os.environ.get("BACKLIGHT_SANITIZE", "")) for flags in (FLAGS, MODULE_FLAGS, LINK_FLAGS)
)


class build_native(build_ext):  # noqa: N801 - setuptools names commands so
    """Compiles the levels beside the module's own sources."""

    def build_extension(self, ext):
        """Compile kernels.c for each level and type, then the module, and link them."""
        import numpy

        if self.compiler.compiler_type == "msvc":
            self._use_clang_cl()
        ext.include_dirs.append(numpy.get_include())
        ext.extra_objects = self._levels()
        super().build_extension(ext)

    def _use_clang_cl(self) -> None:
        """Compile with clang-cl, if BACKLIGHT_COMPILER names it: MSVC's own compiler has no vector types."""
        compiler = shutil.which(os.environ.get("BACKLIGHT_COMPILER", "clang-cl"))
        if compiler is None:
            raise CompileError("native kernels need clang-cl on Windows; backlight works on NumPy alone without them")
        self.compiler.initialize()
        self.compiler.cc = compiler

    def _levels(self) -> list[str]:
        """Return the object files of kernels.c."""

        def compiled(level, kind):
            width, flags = LEVELS[level]
            macros = [("LEVEL", level), ("KIND", kind), ("REAL_BITS", str(TYPES[kind])), ("VECTOR_BYTES", str(width))]
            folder = os.path.join(self.build_temp, level, kind)
            return self.compiler.compile(
                [str(SOURCES / "kernels" / "kernels.c")],
                output_dir=folder,
                macros=macros,
                include_dirs=HEADERS,
                extra_postargs=FLAGS + flags,
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(compiled, level, kind) for level in LEVELS for kind in TYPES]
        return [made for job in jobs for made in job.result()]


native = Extension(
    "backlight.kernels._native",
    sources=[
        str(path)
        for pattern in ("bindings/*.c", "core/*.c", "kernels/gemm_driver.c", "kernels/gemm_amx.c")
        for path in sorted(SOURCES.glob(pattern))
    ],
    include_dirs=HEADERS,
    depends=[str(path) for path in sorted(SOURCES.glob("*/*"))],
    extra_compile_args=MODULE_FLAGS,
    extra_link_args=LINK_FLAGS,
    optional=True,
)

setup(ext_modules=[native], cmdclass={"build_ext": build_native})
