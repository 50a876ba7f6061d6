"""Load the compiled kernels, each of which replaces the NumPy reference of its name.

    @native
    def softmax(x, dim=-1): ...

makes `softmax` the compiled one where there is one. It is called by position; calls that it does not support (another
dtype, strides, keywords) go to the reference, so that both always give the same, except for the last digits.

They come with an allocator that reuses freed arrays' memory (csrc/core/memory.c); BACKLIGHT_MEMORY=system disables it.

The environment variable BACKLIGHT_KERNELS selects them: `numpy` none; `v1`, `v3` or `v4` those for that level of x86-64
(128, 256, 512 bits); `amx` those of `v4`, and Intel's tile unit for large float32 products; unset, the best that this
machine runs. BACKLIGHT_NUM_THREADS is their number of threads.
"""

import functools
import importlib
import os
import warnings
from collections.abc import Callable

from backlight.errors import InputError
from backlight.kernels import blas

NAME = "backlight.kernels._native"
ABSENT = "not built here: install backlight with a C compiler at hand, or from a wheel"
CHOICES = ("", "numpy", "v1", "v3", "v4", "amx")
VECTOR_BYTES = {"v3": 32, "v4": 64, "amx": 64}
INTERFACE = 17  # of csrc/bindings/module.c
REFERENCES: dict[str, Callable] = {}


def default_threads() -> int:
    """Return how many threads to start with: BACKLIGHT_NUM_THREADS, else OMP_NUM_THREADS, else this process's cores."""
    wanted = os.environ.get("BACKLIGHT_NUM_THREADS", "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise InputError(f"BACKLIGHT_NUM_THREADS must be a whole number, 1 or more, got {wanted}")
        return int(wanted)
    first, _, _ = os.environ.get("OMP_NUM_THREADS", "").partition(",")
    if first.strip().isdecimal() and int(first) > 0:
        return int(first)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load():
    """Return (the compiled module, None), or (None, why it is not available)."""
    wanted = os.environ.get("BACKLIGHT_KERNELS", "")
    if wanted not in CHOICES:
        raise InputError(f"BACKLIGHT_KERNELS must be one of numpy, v1, v3, v4, amx or unset, got {wanted}")
    if wanted == "numpy":
        return None, "BACKLIGHT_KERNELS=numpy"
    try:
        module = importlib.import_module(NAME)
    except ModuleNotFoundError as problem:
        if problem.name != NAME:
            return None, _not_loaded(f"does not load: {problem}")
        return None, ABSENT
    except ImportError as problem:
        return None, _not_loaded(f"does not load: {problem}")
    if getattr(module, "INTERFACE", 0) != INTERFACE:
        return None, _not_loaded("was built for another version of backlight")
    if wanted and not module.use_level(wanted):
        raise InputError(f"BACKLIGHT_KERNELS must name a level that this machine runs, got {wanted}")
    module.set_threads(default_threads())
    if os.environ.get("BACKLIGHT_NUM_THREADS"):
        blas.set_threads(default_threads())
    if os.environ.get("BACKLIGHT_MEMORY") != "system":
        module.keep_memory()
    return module, None


def _not_loaded(why: str) -> str:
    """Warn that the compiled module exists but is not usable, and return the reason for `backlight info`."""
    warnings.warn(
        f"{NAME} {why}. backlight runs on NumPy alone now, which is slower; install it again to build the module anew",
        stacklevel=3,
    )
    return why


compiled, why_not = _load()
# The engine's short paths (csrc/core/core.h); BACKLIGHT_CORE=python disables them, not the kernels.
core = None if os.environ.get("BACKLIGHT_CORE") == "python" else compiled


def native(reference: Callable) -> Callable:
    """Return the compiled kernel of the reference's name, or the reference if there is none."""
    REFERENCES[reference.__name__] = reference
    found = None if compiled is None else compiled.kernel(reference)
    return reference if found is None else found


@functools.cache
def multiplies() -> bool:
    """Tell whether the compiled kernels multiply matrices faster than NumPy does (see NOTE [Who multiplies])."""
    width = 0 if compiled is None else VECTOR_BYTES.get(compiled.level(), 0)
    return width > 0 and width >= (blas.vector_bytes() or 0)


def description() -> str:
    """Return a readable description of the kernels in use."""
    if compiled is None:
        return f"NumPy ({why_not})"
    products = "its own products" if multiplies() else f"products by BLAS ({blas.core_name() or 'not OpenBLAS'})"
    return f"native, level {compiled.level()}, {compiled.threads()} threads, {products}"
