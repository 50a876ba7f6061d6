"""What PyTorch does with complex numbers: it is here by name, and says that complex dtypes wait."""

from backlight.dtypes import complex_refused
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.ops.inplace import count_unchanged

__all__ = [
    "complex",
    "conj_physical_",
    "imag",
    "is_conj",
    "is_neg",
    "istft",
    "polar",
    "stft",
    "view_as_complex",
    "view_as_complex_copy",
    "view_as_real",
    "view_as_real_copy",
]


def conj_physical_(input: TensorState):
    """Return the input itself, which counts as written to: backlight has real numbers only."""
    count_unchanged(input, "conj_physical_")
    return input


def refusing(name: str, what: str):
    """Return a function that says that its result would be complex."""

    def refuse(*args, **kwargs):
        raise complex_refused(f"{name}, whose result is complex")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refuse to make {what}: complex dtypes wait.\n\nRaises:\n    TypeError: always."
    return refuse


complex = refusing("complex", "complex numbers of their real and imaginary parts")
polar = refusing("polar", "complex numbers of sizes and angles")
view_as_complex = refusing("view_as_complex", "complex numbers of pairs")
view_as_complex_copy = refusing("view_as_complex_copy", "complex numbers of pairs")
stft = refusing("stft", "the spectra of a signal's windows")


def _of_complex(name: str, message: str, what: str):
    """Return a function that takes complex tensors only, so raises PyTorch's error for a real one."""

    def refuse(input, *args, **kwargs):
        raise ShapeError(f"{message}\n  All tensors of backlight are real: complex dtypes wait")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refuse to return {what} of a real tensor.\n\nRaises:\n    RuntimeError: always."
    return refuse


imag = _of_complex("imag", "imag is not implemented for tensors with non-complex dtypes.", "the imaginary part")
view_as_real = _of_complex("view_as_real", "view_as_real is only supported for complex tensors", "the two parts")
view_as_real_copy = _of_complex(
    "view_as_real_copy", "view_as_real is only supported for complex tensors", "the two parts"
)
istft = _of_complex(
    "istft",
    "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.",
    "the signal",
)


def is_conj(input: TensorState) -> bool:
    """Tell whether a conjugation is pending: never."""
    return False


def is_neg(input: TensorState) -> bool:
    """Tell whether a change of sign is pending: never."""
    return False
