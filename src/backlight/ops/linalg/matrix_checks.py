"""Checks of the arguments of linear algebra, with PyTorch's messages, and its errors."""

from collections.abc import Sequence

import numpy as np

from backlight.dispatch.interpreters import innermost
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import LinAlgError, ShapeError
from backlight.kernels.half_precision import is_half
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.number_operands import no_kernel
from backlight.ops.type_promotion import has_gradient


def times(matrices: np.ndarray) -> str:
    """Return the size of matrices as `2 by 3`."""
    return f"{matrices.shape[-2]} by {matrices.shape[-1]}"


def check_matrix(name: str, array: np.ndarray, argument: str = "A") -> None:
    """Raise PyTorch's error for a tensor that has no rows and columns."""
    if array.ndim < 2:
        raise ShapeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions.\n"
            f"  Its shape is {list(array.shape)}: see unsqueeze"
        )


def check_square(name: str, array: np.ndarray) -> None:
    """Raise PyTorch's error unless a tensor holds square matrices."""
    check_matrix(name, array)
    if array.shape[-1] != array.shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {times(array)} matrices\n"
            "  For other matrices there are lstsq, pinv, qr and svd"
        )


# What PyTorch calls the kernels that do not take half precision.
_KERNELS = {
    "cholesky": "cholesky_cpu",
    "cholesky_inverse": "cholesky_inverse_out_cpu",
    "cholesky_solve": "cholesky_solve_cpu",
    "linalg.cholesky": "cholesky_cpu",
    "linalg.det": "lu_cpu",
    "linalg.lu_solve": "linalg.lu_solve_cpu",
    "linalg.qr": "geqrf_cpu",
    "linalg.solve": "lu_cpu",
    "linalg.solve_triangular": "triangular_solve_cpu",
    "linalg.svd": "linalg_svd_cpu",
    "torch.geqrf": "geqrf_cpu",
    "torch.linalg.ldl_solve": "ldl_solve_kernel_cpu",
    "torch.linalg.ldl_factor_ex": "ldl_factor_kernel_cpu",
    "triangular_solve": "triangular_solve_cpu",
}
_WITHOUT_CHECK = (  # PyTorch's kernels refuse integers there, too
    *("cholesky", "cholesky_inverse", "cholesky_solve"),
    *("linalg.solve_triangular", "torch.geqrf", "triangular_solve"),
)


def check_float(name: str, array: np.ndarray, low_precision: bool = False) -> None:
    """Raise PyTorch's error for a dtype that linear algebra does not take."""
    if not has_gradient(array.dtype):
        if name in _WITHOUT_CHECK:
            raise no_kernel(_KERNELS[name], array.dtype, "convert it first (.float())")
        raise ShapeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{from_numpy_dtype(array.dtype).old_name}\n  Convert it first (.float())"
        )
    if is_half(array) and not low_precision:
        if name in _KERNELS:
            raise no_kernel(_KERNELS[name], array.dtype, "convert it first (.float())")
        raise ShapeError(
            f"{name}: Low precision dtypes not supported. Got {big_name(array.dtype)}\n  Convert it first (.float())"
        )


def check_same_kind(name: str, a: np.ndarray, b: np.ndarray, first: str = "A", second: str = "B") -> None:
    """Raise PyTorch's error for operands of two dtypes."""
    if a.dtype != b.dtype:
        raise ShapeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{big_name(a.dtype)} and {second} of type {big_name(b.dtype)} instead\n  Convert one with .to(dtype)"
        )


def check_equation(name: str, a: np.ndarray, b: np.ndarray, left: bool = True) -> None:
    """Raise PyTorch's error unless a · x = b (or, with left=False, x · a = b) makes sense for stacks of matrices."""
    check_square(name, a)
    check_matrix(name, b, "B")
    if a.shape[-1] != b.shape[-2 if left else -1]:
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    check_batches_broadcast(a, b)


def check_batches_broadcast(a: np.ndarray, b: np.ndarray) -> None:
    """Raise PyTorch's error for batch dims that do not broadcast; `b` is the first of the two it names."""
    left, right = b.shape[:-2], a.shape[:-2]
    dims = max(len(left), len(right))
    for place in range(1, min(len(left), len(right)) + 1):
        sizes = left[-place], right[-place]
        if sizes[0] != sizes[1] and 1 not in sizes:
            raise ShapeError(
                f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at non-singleton "
                f"dimension {dims - place}\n  All dims but the last two must broadcast"
            )


def raise_failure(info: np.ndarray, message: str, name: str, error: type = LinAlgError) -> None:
    """Raise for the first matrix of a batch whose `info` is not 0, unless `name` is empty.

    Args:
        info: int32, one number a matrix.
        message: says what failed; `{0}` stands for the number.
        name: what the error begins with.
    """
    if not name or not np.any(info):
        return
    info = np.asarray(info)
    first = int(np.flatnonzero(info)[0])
    place = f"(Batch element {first}): " if info.ndim else ""
    raise error(f"{name}: {place}{message.format(int(info.reshape(-1)[first]))}")


def like_kind(array: np.ndarray, like: np.ndarray | TensorState):
    """Return a constant array as what `like` is, an array or a tensor."""
    return wrap(array) if isinstance(like, TensorState) else array


def identity(size: int, like: np.ndarray | TensorState):
    """Return the identity matrix, of the dtype and the kind of `like`, an array or a tensor."""
    return like_kind(np.eye(size, dtype=dtype_of(like)), like)


def zeros(shape: Sequence[int], like: np.ndarray | TensorState):
    """Return zeros, of the dtype and the kind of `like`, an array or a tensor."""
    return like_kind(np.zeros(shape, dtype_of(like)), like)


def dtype_of(value: np.ndarray | TensorState) -> np.dtype:
    """Return NumPy's dtype of an array or a tensor."""
    return data_of(value).dtype


def data_of(value: np.ndarray | TensorState):
    """Return the array of a tensor; an array as it is."""
    return value._data if isinstance(value, TensorState) else value


def plain(array: np.ndarray):
    """Return a result that has no history as a tensor; a 0-d array as NumPy's scalar."""
    return wrap(array[()] if isinstance(array, np.ndarray) else array)


def is_differentiated(tensor: TensorState) -> bool:
    """Tell whether a call must be one of an op: because it is recorded, or there is an interpreter."""
    return innermost() is not None or (tensor._edge is not None and modes.grad_enabled)
