"""Tensors as text, character for character as PyTorch prints them.

All numbers of a tensor are written alike: the widest sets the width, and as soon as one has a fraction, all show
decimals. Scientific notation is chosen where the largest is over a thousand times the smallest, over 1e8, or the
smallest is under 1e-4. Tensors of more than `threshold` elements show `edgeitems` at either end of each dim.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from backlight import dtypes
from backlight.codegen.forward_mode import levels
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, the_tensor_class
from backlight.errors import ValueProblem
from backlight.kernels.elementwise.complex_parts import imaginary_parts, real_parts
from backlight.kernels.sparse_array import is_sparse
from backlight.kernels.state_blocks import block, silent_floats
from backlight.ops.type_promotion import is_float, scalar_dtype

__all__ = ["set_printoptions"]


class PrintOptions(NamedTuple):
    """The options for printing tensors; see `set_printoptions` for each field."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the decimal point.
        threshold: the number of elements above which only the edges of a tensor are shown.
        edgeitems: how many elements are shown at either end of a dim then.
        linewidth: characters to a line.
        profile: "default", "short" or "full", the values to start from; the other arguments override them.
        sci_mode: whether to use scientific notation; None decides by the values.

    Raises:
        ValueError: there is no such profile.
    """
    global _options
    if profile is not None and not (isinstance(profile, str) and profile in PROFILES):
        raise ValueProblem(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
    start = _options if profile is None else PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options = start._replace(sci_mode=sci_mode, **{name: value for name, value in given.items() if value is not None})


def get_printoptions() -> dict:
    """Return the options in force, as keyword arguments for `set_printoptions`."""
    return _options._asdict()


@block
def printoptions(**options):
    """Print with other options (see `set_printoptions`) inside a `with` block."""
    global _options
    before = _options
    try:
        set_printoptions(**options)
        yield
    finally:
        _options = before


def tensor_string(tensor: TensorState) -> str:
    """Return a tensor as PyTorch's `repr` shows it: its values and all non-default properties."""
    kind = type(tensor)
    prefix = "tensor(" if kind is the_tensor_class() else vars(kind).get("_printed_as", kind.__name__) + "("
    return _with_suffixes(prefix + _values(tensor._data, len(prefix)), _suffixes(tensor), len(prefix))


def described(tensor: TensorState, contents: str) -> str:
    """Return a tensor as PyTorch's `repr` shows it, with a text in place of its values."""
    prefix = type(tensor).__name__ + "("
    suffixes = [one for one in _suffixes(tensor) if not one.startswith("size=")]
    return _with_suffixes(prefix + contents, suffixes, len(prefix))


def sparse_string(tensor: TensorState, indices: np.ndarray, values: np.ndarray) -> str:
    """Return a sparse tensor as PyTorch's `repr` shows it."""
    kind = type(tensor)
    prefix = "tensor(" if kind is the_tensor_class() else vars(kind).get("_printed_as", kind.__name__) + "("
    parts = []
    for name, part in (("indices=tensor(", indices), ("values=tensor(", values)):
        size = f", size={part.shape}" if part.size == 0 else ""
        parts.append(name + _values(part, len(prefix + name)) + size + ")")
    suffixes = [one for one in _suffixes(tensor) if not one.startswith("size=")]
    own = [one for one in suffixes if one.startswith("dtype=")]
    rest = [one for one in suffixes if one not in own]
    suffixes = [f"size={tensor._data.shape}", f"nnz={len(values)}", *own, "layout=torch.sparse_coo", *rest]
    return _with_suffixes(prefix + (",\n" + " " * len(prefix)).join(parts), suffixes, len(prefix), new_line=True)


def _suffixes(tensor: TensorState) -> list[str]:
    """Return the parts that follow the values: size, dtype, the node or `requires_grad`."""
    data, found = tensor._data, []
    kind = from_numpy_dtype(data.dtype)
    expected = {dtypes.get_default_dtype()}
    if is_sparse(tensor):
        expected |= {dtypes.int64, dtypes.bool, scalar_complex()}
    elif data.size == 0:
        if data.ndim != 1:
            found.append(f"size={data.shape}")
    else:
        expected |= {dtypes.int64, dtypes.bool, scalar_complex()}  # visible from the values
        if not _options.edgeitems:
            found.append(f"size={data.shape}")
    if kind not in expected:
        found.append(f"dtype={kind}")
    if tensor.grad_fn is not None:
        found.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        found.append("requires_grad=True")
    tangents = [level.tangent_of(tensor) for level in levels()]
    found += [f"tangent={tangent}" for tangent in tangents[-1:] if tangent is not None]
    return found


def _with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Append suffixes, each on the same line if it fits; the first on a new line if that is requested."""
    parts = [text]
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or length + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length, new_line = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def _values(data: np.ndarray | np.generic, indent: int) -> str:
    if data.size == 0:
        return "[]"
    if data.dtype.kind == "V":
        data = data.astype(np.float32)
    summarize = data.size > _options.threshold
    return _nested(data, indent, summarize, number_format(_edges(data) if summarize else data))


def _edges(data: np.ndarray) -> np.ndarray:
    """Return the elements that a summary shows."""
    for dim, size in enumerate(data.shape):
        edge = _options.edgeitems
        if size > 2 * edge > 0:
            data = np.take(data, [*range(edge), *range(size - edge, size)], dim)
    return data


def _nested(data: np.ndarray | np.generic, indent: int, summarize: bool, write: Callable) -> str:
    """Return an array as nested brackets; `write` turns one number into text."""
    if data.ndim == 0:
        return write(data.item())
    if data.ndim == 1:
        return _row(data, indent, summarize, write)
    edge, rows = _options.edgeitems, len(data)
    if summarize and rows > 2 * edge:
        shown = [*range(edge), None, *range(rows - edge, rows)]
    else:
        shown = range(rows)
    parts = ["..." if i is None else _nested(data[i], indent + 1, summarize, write) for i in shown]
    between = "," + "\n" * (data.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def _row(data: np.ndarray | np.generic, indent: int, summarize: bool, write: Callable) -> str:
    """Return one row in brackets, broken into lines."""
    edge = _options.edgeitems
    if summarize and not edge:
        parts = ["..."]
    elif summarize and len(data) > 2 * edge:
        parts = [*map(write, data[:edge].tolist()), " ...", *map(write, data[-edge:].tolist())]
    else:
        parts = [write(number) for number in data.tolist()]
    per_line = max(1, (_options.linewidth - indent) // (write.width + 2))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


class _Writer:
    """Turns one number into text, right-aligned to `width`."""

    def __init__(self, text: Callable, width: int):
        self.text = text
        self.width = width

    def __call__(self, number: float) -> str:
        return self.text(number).rjust(self.width)


class _ComplexWriter:
    """Turns one complex number into text: its parts as each is written, the imaginary one with its sign."""

    def __init__(self, real: _Writer, imag: _Writer):
        self.real, self.imag = real, imag
        self.width = real.width + imag.width + 1

    def __call__(self, number: complex) -> str:
        text = self.imag(number.imag).lstrip() + "j"
        return self.real(number.real) + ("" if text[0] in "+-" else "+") + text


def number_format(data: np.ndarray) -> _Writer | _ComplexWriter:
    """Return the writer for all numbers of an array."""
    if data.dtype.kind in "cW":
        return _ComplexWriter(number_format(real_parts(data)), number_format(imaginary_parts(data)))
    if not is_float(data.dtype):
        return _Writer(str, max((len(str(number)) for number in data.ravel().tolist()), default=1))
    numbers = data.ravel().astype(np.float64)
    numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
    if not numbers.size:
        return _Writer(_integer_text, 1)
    text = _float_text(numbers)
    return _Writer(text, max(map(len, map(text, numbers.tolist()))))


def scalar_complex() -> dtypes.dtype:
    """Return the dtype that Python's complex numbers become."""
    return from_numpy_dtype(scalar_dtype(0j))


def _float_text(numbers: np.ndarray):
    """Return the format of floats, given all that are finite and not 0."""
    with silent_floats():
        sizes = np.abs(numbers)
        smallest, largest = sizes.min(), sizes.max()
        uneven = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if uneven if _options.sci_mode is None else _options.sci_mode:
        return f"{{:.{_options.precision}e}}".format
    if np.array_equal(numbers, np.ceil(numbers)):
        return _integer_text
    return f"{{:.{_options.precision}f}}".format


def _integer_text(number: float) -> str:
    """Return a float without a fraction as `3.`; nan and inf stay without a point."""
    return f"{number:.0f}" + ("." if math.isfinite(number) else "")
