"""PyTorch and transformers, imported when a model of theirs is used, and PyTorch's devices and dtypes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from backlight.errors import InputError, install_hint

DEVICES = ("cpu", "cuda", "mps")
DTYPES = ("auto", "float32", "bfloat16", "float16")


def torch_library() -> ModuleType:
    """Return PyTorch. Raises InputError: it is missing."""
    return _libraries()[0]


def transformers_library() -> ModuleType:
    """Return transformers. Raises InputError: it is missing, or PyTorch is."""
    return _libraries()[1]


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import torch
        import transformers
    except ImportError as problem:
        raise InputError(
            f'engine="torch" needs PyTorch and transformers, and {problem.name} is missing: ' + install_hint("torch")
        ) from problem
    return torch, transformers


def checked_device(name: str) -> str:
    """Return the name of a device that PyTorch can use here.

    Raises:
        InputError: there is no such device, or this PyTorch cannot use it.
    """
    torch = torch_library()
    kind, _, number = str(name).partition(":")
    if kind not in DEVICES or (number and not number.isdecimal()):
        raise InputError(f"device must be one of {', '.join(DEVICES)}, or cuda:N, got {name}")
    if kind == "cuda" and not torch.cuda.is_available():
        why = "this PyTorch was built without CUDA" if torch.version.cuda is None else "PyTorch finds no GPU"
        raise InputError(f"device cuda is not there: {why} ({torch.__version__}); use device=cpu")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise InputError(f"device {name} is not there: PyTorch finds {torch.cuda.device_count()} GPU(s), from cuda:0")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("device mps is not there: it needs macOS on Apple silicon; use device=cpu")
    return str(name)


def checked_dtype(name: str) -> str:
    """Return the name of a dtype that models run in. Raises InputError: it is none."""
    if name not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {name}")
    return name


def dtype_named(name: str) -> Any:
    """Return PyTorch's dtype of a name of `DTYPES`; "auto" itself, which transformers knows."""
    return name if name == "auto" else getattr(torch_library(), name)


@contextlib.contextmanager
def loading(library: str, what: str, folder: Path) -> Iterator[None]:
    """Load a model inside the block, without progress bars and warnings of transformers.

    Raises:
        InputError: the library cannot load it, in its own words.
    """
    logs = transformers_library().utils.logging
    bars, level = logs.is_progress_bar_enabled(), logs.get_verbosity()
    logs.disable_progress_bar()
    logs.set_verbosity_error()
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, ImportError) as problem:
        said = (str(problem).strip() or type(problem).__name__).split("\n")[0]
        raise InputError(f"{library} cannot load {what} from {folder}: {said}") from problem
    finally:
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()


def sent(tensor: Any, device: str) -> Any:
    """Return a tensor on a device; to a GPU from pinned memory, without waiting for the copy.

    PyTorch keeps pinned memory until the copy is done.
    """
    if device.partition(":")[0] != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def is_compile_failure(problem: BaseException) -> bool:
    """Return whether an error says that `torch.compile` cannot compile something."""
    return isinstance(problem, torch_library()._dynamo.exc.TorchDynamoException)


def is_out_of_memory(problem: BaseException) -> bool:
    """Return whether an error says that a device has no memory left: a GPU's has a type, the processor's a text."""
    torch = torch_library()
    if isinstance(problem, torch.OutOfMemoryError):
        return True
    said = str(problem)
    return isinstance(problem, RuntimeError) and ("can't allocate memory" in said or "out of memory" in said)


def free_memory(device: str) -> None:
    """Give memory that PyTorch keeps for later back to a GPU."""
    torch = torch_library()
    with contextlib.suppress(RuntimeError, AttributeError):
        getattr(torch, device.partition(":")[0]).empty_cache()
