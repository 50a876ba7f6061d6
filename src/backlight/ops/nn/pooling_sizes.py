"""Where the windows of a pooling lie: options, sizes, checks, with PyTorch's messages."""

from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral
from typing import NamedTuple

from backlight.errors import ArgumentError, ShapeError, ValueProblem

NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}


class Windows(NamedTuple):
    """The windows of one pooling: a tuple with a number for each dim pooled over."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    ceil_mode: bool

    def places(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along each dim."""
        return _places(self, tuple(sizes))

    def _along(self, size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
        free = size + 2 * padding - dilation * (kernel - 1) - 1
        count = -(-free // stride) + 1 if self.ceil_mode else free // stride + 1
        # the last window must start inside the input or the padding before it
        return count - 1 if self.ceil_mode and (count - 1) * stride >= size + padding else count

    @property
    def overlap(self) -> bool:
        """Whether an element may lie in two windows."""
        return any(d * (k - 1) + 1 > s for k, s, d in zip(self.kernel, self.stride, self.dilation))


@lru_cache(1024)
def _places(windows: Windows, sizes: tuple) -> tuple[int, ...]:
    return tuple(map(windows._along, sizes, windows.kernel, windows.stride, windows.padding, windows.dilation))


def windows_of(
    name: str, dims: int, kernel_size, stride, padding, dilation, ceil_mode, *, with_places: bool = True
) -> Windows:
    """Return the windows that a caller's options describe.

    Args:
        with_places: whether the caller asked for places: if not, PyTorch has other words for a wrong padding.

    Raises:
        RuntimeError: an option is out of range or has another number of values than dims.
    """
    kernel = numbers_of(name, "kernel_size", kernel_size, dims)
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    stride = kernel if empty else numbers_of(name, "stride", stride, dims)
    padding = numbers_of(name, "padding", padding, dims)
    dilation = numbers_of(name, "dilation", dilation, dims)
    return _checked_windows(name, kernel, stride, padding, dilation, bool(ceil_mode), with_places)


@lru_cache(1024)
def _checked_windows(name: str, kernel, stride, padding, dilation, ceil_mode: bool, with_places: bool) -> Windows:
    if 0 not in stride or name == "max_pool1d":
        _require_positive(name, "kernel size", kernel)
    _require_positive(name, "stride", stride)
    _require_positive(name, "dilation", dilation)
    for pad, size, step in zip(padding, kernel, dilation):
        if pad < 0:
            raise ShapeError(
                f"pad must be non-negative, but got pad: {pad}"
                if with_places
                else f"{name}() padding must be non-negative, but got {pad}"
            )
        if not with_places and pad > size // 2:
            raise ShapeError(
                f"{name}() padding should be at most half of kernel size, but got padding={pad} and kernel_size={size}"
            )
        if pad > (step * (size - 1) + 1) // 2:
            raise ShapeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad}, kernel_size={size} and dilation={step}"
            )
    return Windows(kernel, stride, padding, dilation, ceil_mode)


def _require_positive(name: str, option: str, numbers: Sequence[int]) -> None:
    """Raise PyTorch's error for a size, a stride or a dilation of 0 or less."""
    least = min(numbers)
    if least > 0:
        return
    if name == "max_pool1d":
        raise ShapeError(f"max_pool1d() {option.replace(' ', '_')} must be greater than zero, but got {least}")
    if option == "stride" and least == 0:
        raise ShapeError(f"stride should not be zero; {name} got {list(numbers)}")
    letter = {"kernel size": "k", "stride": "d"}.get(option, option)
    listed = " ".join(f"{letter}{axis}: {number}" for axis, number in zip("THW"[-len(numbers) :], numbers))
    raise ShapeError(f"{option} should be greater than zero, but got {listed} for {name}")


def numbers_of(name: str, option: str, value: int | Sequence[int], dims: int) -> tuple[int, ...]:
    """Return one number for each dim, or raise PyTorch's error."""
    if value.__class__ is int or isinstance(value, Integral):
        return (int(value),) * dims
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(f"{name}(): argument '{option}' must be tuple of ints, not {type(value).__name__}")
    for place, one in enumerate(value):
        if not isinstance(one, Integral):
            raise ArgumentError(
                f"{name}(): argument '{option}' must be tuple of ints, but found element of type {type(one).__name__} "
                f"at pos {place}"
            )
    if len(value) not in (1, dims):
        raise ShapeError(_miscounted(name, option, value, dims))
    return tuple(map(int, value)) * (dims if len(value) == 1 else 1)


def _miscounted(name: str, option: str, value: Sequence[int], dims: int) -> str:
    """Return PyTorch's message for a tuple of the wrong length."""
    if name == "max_pool1d":
        return (
            f"max_pool1d() {option} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}"
        )
    if dims == 1:
        return f"{name}() argument '{option}' should contain one int (got {len(value)})"
    if option == "output_size":
        found = "(): internal error: output_size.size()" if "max" in name else ": output_size"
        return f"{name}{found} must be {dims}; got {tuple(value)}"
    either = "either " if name != "avg_pool3d" else ""
    return f"{name}: {option} must {either}be a single int, or a tuple of {NUMBERS[dims]}, got {tuple(value)}"


def checked_places(name: str, windows: Windows, shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many windows there are along each dim, or raise PyTorch's error where there are none."""
    dims = len(windows.kernel)
    sizes = shape[-dims:]
    places = windows.places(sizes)
    if min(places) < 1:
        if name == "max_pool1d":
            raise ShapeError(f"max_pool1d() Invalid computed output size: {places[0]}; the input has size {sizes[0]}")
        one = (1,) if dims == 1 else ()
        found = "x".join(map(str, (shape[-dims - 1], *one, *sizes)))
        given = "x".join(map(str, (shape[-dims - 1], *one, *[max(n, 0) for n in places])))
        raise ShapeError(f"Given input size: ({found}). Calculated output size: ({given}). Output size is too small")
    return places


def check_dims(name: str, shape: Sequence[int], dims: int, sizes: int | Sequence[int | None] | None = None) -> None:
    """Raise PyTorch's error unless the shape has the dims pooled over, channels, and perhaps a batch.

    Args:
        sizes: the output's that adaptive pooling is to have.
    """
    if len(shape) in (dims + 1, dims + 2):
        _check_not_empty(name, shape, dims)
    elif dims == 1 and name != "max_pool1d":
        raise ShapeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )
    elif dims == 1:
        raise ShapeError(_expected(name, shape, dims))
    elif name.startswith("adaptive"):
        if sizes.__class__ in (tuple, list) and len(shape) <= len(sizes):
            raise ValueProblem(f"Input dimension should be at least {len(sizes) + 1}; it has the shape {list(shape)}")
        colon = ":" if "max" in name else ""
        raise ShapeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
    else:
        raise ShapeError(
            f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input; {name} got {list(shape)}"
        )


def _check_not_empty(name: str, shape: Sequence[int], dims: int) -> None:
    """Raise PyTorch's error for an empty dim; the batch may be empty, and for adaptive pooling some channels too."""
    if 0 not in shape:
        return
    adaptive = name.startswith("adaptive")
    first = len(shape) - dims - 1
    if adaptive:
        first = len(shape) - dims if name in ("adaptive_avg_pool1d", "adaptive_avg_pool2d") else 1
    empty = [dim for dim in range(first, len(shape)) if not shape[dim]]
    if not empty:
        return
    if adaptive:
        raise ShapeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {empty[0]} being empty"
        )
    if dims == 3:
        inner = "max_pool3d_with_indices_out_cpu_template" if "max" in name else name
        raise ShapeError(
            f"{inner}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(shape)} and non-batch dimension 0 has length zero!"  # PyTorch names the length, not the dim
        )
    raise ShapeError(_expected(name, shape, dims))


def _expected(name: str, shape: Sequence[int], dims: int) -> str:
    before = f"{name}: " if name == "max_pool1d" else ""
    shown = (*shape[:-1], 1, shape[-1]) if name == "avg_pool1d" else shape  # PyTorch makes planes of it first
    most = 3 if name == "max_pool1d" else 4
    return (
        f"{before}Expected {most - 1}D or {most}D (batch mode) tensor with optional 0 dim batch size for input, but "
        f"got:{list(shown)}"
    )


def check_unpooled(shape: Sequence[int], dims: int) -> None:
    """Raise PyTorch's error unless `max_unpool` can put elements of this shape back: PyTorch has planes and volumes."""
    dims, sizes = max(dims, 2), [*shape, *[1] * (dims == 1)]
    if len(sizes) not in (dims + 1, dims + 2):
        raise ShapeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{len(sizes)} dimensions."
        )
    empty = [dim for dim in range(1, len(sizes)) if not sizes[dim]]
    if empty:
        raise ShapeError(
            f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
            f"but got {sizes} with dimension {empty[0]} being empty."
        )
