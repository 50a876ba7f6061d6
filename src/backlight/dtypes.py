"""The element types, under PyTorch's names and printed as PyTorch prints them.

NOTE [complex32]
NumPy has no complex numbers of half precision; ml_dtypes has, of the kind "W", which NumPy's functions compute, but its
`.real` and `.imag` do not read. PyTorch's CPU computes few functions of them: `HALF_KERNELS` of
codegen/missing_kernels.py has the others. A dtype is complex if its kind is in "cW".
"""

import builtins

import ml_dtypes
import numpy as np

from backlight.errors import ArgumentError, GraphError

__all__ = [
    "bfloat16",
    "bool",
    "cdouble",
    "cfloat",
    "chalf",
    "complex32",
    "complex64",
    "complex128",
    "double",
    "dtype",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "iinfo",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "set_default_dtype",
    "short",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_C_NAMES = {
    "int64": "long int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}

FLOATS, INTEGERS, BOOLS, COMPLEX = "float", "integer", "bool", "complex"


class dtype:  # noqa: N801 - PyTorch's name
    """An element type; `dtype.numpy` is NumPy's object for the same type."""

    __slots__ = ("is_complex", "is_floating_point", "kind", "name", "numpy", "old_name")

    def __new__(cls, *args, **kwargs):
        """Refuse: all dtypes there are have names."""
        raise ArgumentError("cannot create 'torch.dtype' instances; take one by its name, as float32")

    @classmethod
    def _made(cls, name: str, numpy_type, kind: str, old_name: str) -> "dtype":
        self = object.__new__(cls)
        self.name = name
        self.numpy = np.dtype(numpy_type)
        self.kind = kind
        self.old_name = old_name
        self.is_floating_point = kind == FLOATS
        self.is_complex = kind == COMPLEX
        return self

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.numpy.itemsize

    @property
    def is_signed(self) -> builtins.bool:
        """Whether the type holds negative numbers."""
        return self.kind in (FLOATS, COMPLEX) or self.numpy.kind == "i"

    @property
    def c_name(self) -> str:
        """The type's name in C++, as PyTorch's messages have it: long int, unsigned char, c10::Half."""
        return _C_NAMES.get(self.name, self.old_name.lower())

    def to_real(self) -> "dtype":
        """Return the dtype of the real and imaginary parts; of a real dtype, itself."""
        return BY_NUMPY[real_dtype(self.numpy)]

    def to_complex(self) -> "dtype":
        """Return the complex dtype whose parts have this dtype; of a complex dtype, itself.

        Raises:
            RuntimeError: the dtype is one of integers or bools.
        """
        if self.kind in (INTEGERS, BOOLS):
            raise GraphError(f"Unknown Complex ScalarType for {self.old_name}; take torch.complex64, say")
        return BY_NUMPY[complex_dtype(self.numpy)]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_by_name, (self.name,))


float16 = half = dtype._made("float16", np.float16, FLOATS, "Half")
bfloat16 = dtype._made("bfloat16", ml_dtypes.bfloat16, FLOATS, "BFloat16")
float32 = float = dtype._made("float32", np.float32, FLOATS, "Float")
float64 = double = dtype._made("float64", np.float64, FLOATS, "Double")
int8 = dtype._made("int8", np.int8, INTEGERS, "Char")
uint8 = dtype._made("uint8", np.uint8, INTEGERS, "Byte")
int16 = short = dtype._made("int16", np.int16, INTEGERS, "Short")
int32 = int = dtype._made("int32", np.int32, INTEGERS, "Int")
int64 = long = dtype._made("int64", np.int64, INTEGERS, "Long")
uint16 = dtype._made("uint16", np.uint16, INTEGERS, "UInt16")
uint32 = dtype._made("uint32", np.uint32, INTEGERS, "UInt32")
uint64 = dtype._made("uint64", np.uint64, INTEGERS, "UInt64")
bool = dtype._made("bool", np.bool_, BOOLS, "Bool")

complex32 = chalf = dtype._made("complex32", ml_dtypes.complex32, COMPLEX, "ComplexHalf")
complex64 = cfloat = dtype._made("complex64", np.complex64, COMPLEX, "ComplexFloat")
complex128 = cdouble = dtype._made("complex128", np.complex128, COMPLEX, "ComplexDouble")

_FLOATING = (float16, bfloat16, float32, float64, complex32, complex64, complex128)
ALL = (*_FLOATING, int8, uint8, int16, int32, int64, uint16, uint32, uint64, bool)
BAREBONES_UNSIGNED = frozenset((uint16.numpy, uint32.numpy, uint64.numpy))  # promoted with floats only; few kernels
BAREBONES = BAREBONES_UNSIGNED | {complex32.numpy}
OLD = tuple(kind for kind in ALL if kind.numpy not in BAREBONES)  # with storages, methods … of their names
COMPLEX_NUMBERS = frozenset(kind.numpy.num for kind in ALL if kind.is_complex)  # NumPy's: the quickest to compare
BY_NUMPY = {kind.numpy: kind for kind in ALL}
BY_NAME = {kind.name: kind for kind in ALL}

_default = float32


def _by_name(name: str) -> dtype:
    return BY_NAME[name]


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the dtype that Python floats become; it must be a floating point one."""
    global _default
    if not (isinstance(d, dtype) and d.is_floating_point):
        raise ArgumentError(
            f"{'' if isinstance(d, dtype) else 'invalid dtype object: '}only floating-point types are supported as the "
            f"default type, got {d!r}: "
            "pass torch.float64"
        )
    _default = d


def from_numpy_dtype(numpy_type: np.dtype) -> dtype:
    """Return the backlight dtype of a NumPy one, or raise PyTorch's error for a type that has none."""
    found = BY_NUMPY.get(numpy_type)
    if found is None:
        raise ArgumentError(
            f"can't convert np.ndarray of type numpy.{numpy_type.type.__name__}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        )
    return found


def real_dtype(kind: np.dtype) -> np.dtype:
    """Return the NumPy dtype of the parts of a complex one; of a real one, itself."""
    if kind.kind == "W":
        return float16.numpy
    return np.empty(0, kind).real.dtype if kind.kind == "c" else kind


def complex_dtype(kind: np.dtype) -> np.dtype:
    """Return the complex NumPy dtype whose parts have the given dtype; integers and bools give the default's."""
    if kind.kind in "cW":
        return kind
    if kind == float16.numpy:
        return complex32.numpy
    wide = _default.numpy if kind.kind in "iub" else kind
    return complex128.numpy if wide == float64.numpy else complex64.numpy


def to_numpy_dtype(kind) -> np.dtype | None:
    """Return NumPy's object for a dtype (None stays None; Python's float, int and bool are allowed as in PyTorch)."""
    if kind is None:
        return None
    if isinstance(kind, dtype):
        return kind.numpy
    if isinstance(kind, type) and kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind].numpy
    if isinstance(kind, type) and isinstance(getattr(kind, "dtype", None), dtype):  # torch.FloatTensor and the like
        return kind.dtype.numpy
    raise ArgumentError(f"argument 'dtype' must be torch.dtype, not {type(kind).__name__}; pass torch.float32, say")


_PYTHON_TYPES = {builtins.float: float64, builtins.int: int64, builtins.bool: bool, builtins.complex: complex128}


def _dtype_given(function: str, kind) -> dtype:
    if isinstance(kind, type) and kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    if not isinstance(kind, dtype):
        raise ArgumentError(
            f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type(kind).__name__}"
        )
    return kind


class finfo:  # noqa: N801 - PyTorch's name
    """Machine limits of a floating point dtype: `eps`, `max`, `min`, `tiny`, `bits`, `resolution`."""

    def __init__(self, kind: dtype | None = None):
        kind = _dtype_given("finfo", _default if kind is None else kind)
        if kind.is_complex:
            kind = kind.to_real()
        if not kind.is_floating_point:
            raise ArgumentError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo': "
                f"{kind} is given"
            )
        limits = ml_dtypes.finfo(kind.numpy)
        self.dtype, self.bits = kind.name, limits.bits
        self.resolution = builtins.float(10.0**-limits.precision)
        for name in ("eps", "max", "min", "tiny", "smallest_normal"):
            setattr(self, name, builtins.float(getattr(limits, name)))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - PyTorch's name
    """Limits of an integer dtype: `max`, `min`, `bits`."""

    def __init__(self, kind: dtype):
        kind = _dtype_given("iinfo", kind)
        if kind is bool:
            raise ArgumentError("torch.bool is not supported by torch.iinfo")
        if kind.kind != INTEGERS:
            raise ArgumentError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo': "
                f"{kind} is given"
            )
        limits = np.iinfo(kind.numpy)
        self.dtype, self.bits = kind.name, limits.bits
        self.max, self.min = builtins.int(limits.max), builtins.int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
