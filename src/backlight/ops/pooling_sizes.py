"""Where the windows of a pooling lie: options, sizes, checks, with PyTorch's messages."""

from dataclasses import dataclass
from numbers import Integral

from backlight.errors import ShapeError

NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}


@dataclass(frozen=True)
class Windows:
    """The windows of one pooling: a tuple with a number for each dim pooled over."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    ceil_mode: bool

    def places(self, sizes) -> tuple[int, ...]:
        """Return how many windows there are along each dim."""
        return tuple(map(self._along, sizes, self.kernel, self.stride, self.padding, self.dilation))

    def _along(self, size, kernel, stride, padding, dilation) -> int:
        free = size + 2 * padding - dilation * (kernel - 1) - 1
        count = -(-free // stride) + 1 if self.ceil_mode else free // stride + 1
        # the last window must start inside the input or the padding before it
        return count - 1 if self.ceil_mode and (count - 1) * stride >= size + padding else count

    @property
    def overlap(self) -> bool:
        """Whether an element may lie in two windows."""
        return any(d * (k - 1) + 1 > s for k, s, d in zip(self.kernel, self.stride, self.dilation))


def windows_of(name: str, dims: int, kernel_size, stride, padding, dilation, ceil_mode) -> Windows:
    """Return the windows that a caller's options describe.

    Raises:
        RuntimeError: an option is out of range or has another number of values than dims.
    """
    kernel = numbers_of(name, "kernel_size", kernel_size, dims)
    empty = stride is None or (not isinstance(stride, Integral) and len(stride) == 0)
    stride = kernel if empty else numbers_of(name, "stride", stride, dims)
    padding = numbers_of(name, "padding", padding, dims)
    dilation = numbers_of(name, "dilation", dilation, dims)
    if min(kernel) <= 0:
        raise ShapeError(f"kernel size should be greater than zero, but got {list(kernel)} for {name}")
    if min(stride) <= 0:
        raise ShapeError(f"stride should not be zero; {name} got {list(stride)}")
    if min(dilation) <= 0:
        raise ShapeError(f"dilation should be greater than zero, but got {list(dilation)} for {name}")
    for pad, size, step in zip(padding, kernel, dilation):
        if pad < 0:
            raise ShapeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (step * (size - 1) + 1) // 2:
            raise ShapeError(_too_much(name, pad, size, step))
    return Windows(kernel, stride, padding, dilation, bool(ceil_mode))


def _too_much(name, pad, size, step) -> str:
    if name == "max_pool1d":
        return (
            f"max_pool1d() padding should be at most half of kernel size, but got padding={pad} and kernel_size={size}"
        )
    return (
        "pad should be at most half of effective kernel size, but got "
        f"pad={pad}, kernel_size={size} and dilation={step}"
    )


def numbers_of(name: str, option: str, value, dims: int) -> tuple[int, ...]:
    """Return one number for each dim, or raise PyTorch's error."""
    if isinstance(value, Integral):
        return (int(value),) * dims
    found = tuple(map(int, value))
    if len(found) not in (1, dims):
        raise ShapeError(
            f"{name}: {option} must either be a single int, or a tuple of {NUMBERS[dims]}, got {tuple(value)}"
        )
    return found * dims if len(found) == 1 else found


def checked_places(name: str, windows: Windows, shape) -> tuple[int, ...]:
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


def check_dims(name: str, shape, dims: int) -> None:
    """Raise PyTorch's error unless the shape has the dims pooled over, channels, and perhaps a batch."""
    if len(shape) not in (dims + 1, dims + 2):
        if dims == 1:
            raise ShapeError(
                f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
                f"got:{list(shape)}"
            )
        if name.startswith("adaptive"):
            colon = ":" if "max" in name else ""
            raise ShapeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
        raise ShapeError(
            f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input; {name} got {list(shape)}"
        )
    empty = [dim for dim in range(len(shape) - dims - 1, len(shape)) if not shape[dim]]
    if empty:
        raise ShapeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {empty[0]} being empty"
        )
