"""Transforms of samples: PyTorch's `torchvision.transforms`, as far as no imaging library is needed.

NOTE [Batched transforms]
A transform is called with one sample. One that can do the same to many samples at once declares it by a method
`batched(images)`, which takes a uint8 array or tensor of shape (batch, height, width) or what the transform before it
returned, and returns a tensor whose first dim is the batch. A Compose is batched if all its parts are; a loader then
builds a batch in one step. `batched_form(transform)` finds out.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.dtypes import dtype as dtype_kind
from backlight.dtypes import get_default_dtype, uint8
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ValueProblem
from backlight.tensor.tensor import Tensor

__all__ = ["Compose", "ConvertImageDtype", "Lambda", "Normalize", "PILToTensor", "ToTensor", "batched_form"]

Images = np.ndarray | Tensor

GREY, COLOURED = 2, 3  # dims of one image


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable]):
        self.transforms = transforms

    def __call__(self, img: object):
        for transform in self.transforms:
            img = transform(img)
        return img

    @property
    def batched(self) -> Callable | None:
        """The same for many samples at once; None if a part cannot (see NOTE [Batched transforms])."""
        parts = [batched_form(transform) for transform in self.transforms]
        if not parts or None in parts:
            return None

        def apply(images: Images):
            for part in parts:
                images = part(images)
            return images

        return apply

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}(", *(f"    {transform}" for transform in self.transforms), ")"])


class ToTensor:
    """Return an image (a PIL image or an array, height × width × channels) as a tensor, channels first.

    Bytes become float32 between 0 and 1; other kinds of numbers stay as they are.
    """

    def __call__(self, pic: object) -> Tensor:
        image = _array_of(pic)
        if image.ndim == GREY:
            image = image[:, :, None]
        return _scaled(np.ascontiguousarray(image.transpose(2, 0, 1)))

    def batched(self, images: Images) -> Tensor:
        """Return grey images (batch, height, width) as a tensor (batch, 1, height, width)."""
        return _scaled(np.asarray(images)[:, None])

    def __repr__(self) -> str:
        return "ToTensor()"


class PILToTensor:
    """Return a PIL image as a tensor of its numbers, channels first."""

    def __call__(self, pic: object) -> Tensor:
        image = _array_of(pic)
        if image.ndim == GREY:
            image = image[:, :, None]
        return wrap(image.transpose(2, 0, 1).copy())

    def batched(self, images: Images) -> Tensor:
        """Return grey images (batch, height, width) as a tensor (batch, 1, height, width)."""
        return wrap(np.array(images)[:, None])

    def __repr__(self) -> str:
        return "PILToTensor()"


class Normalize:
    """Shift and scale each channel: (image − mean) / std.

    Shapes: image (..., channels, height, width); mean and std have one number a channel, or one for all.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def __call__(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, TensorState):
            raise ArgumentError(f"img should be Tensor Image. Got {type(tensor)}; put ToTensor() before Normalize")
        if not tensor.is_floating_point():
            raise ArgumentError(
                f"Input tensor should be a float tensor. Got {tensor.dtype}; put ToTensor() or "
                "ConvertImageDtype(torch.float32) before Normalize"
            )
        if tensor.ndim < COLOURED:
            raise ValueProblem(
                "Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = "
                f"{tensor.size()}: add a dim with unsqueeze(0)"
            )
        kind = tensor._data.dtype
        mean, std = (np.atleast_1d(np.asarray(each, kind))[:, None, None] for each in (self.mean, self.std))
        if not std.all():
            raise ValueProblem(
                f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero."
            )
        if self.inplace:
            return tensor.sub_(wrap(mean)).div_(wrap(std))
        return (tensor - wrap(mean)) / wrap(std)

    batched = __call__

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class ConvertImageDtype:
    """Convert an image's numbers, mapping the full range of one dtype to that of the other."""

    def __init__(self, dtype: dtype_kind):
        if not isinstance(dtype, dtype_kind):
            raise ArgumentError("Input dtype should be torch.dtype")
        self.dtype = dtype

    def __call__(self, image: Tensor) -> Tensor:
        old, new = image.dtype, self.dtype
        if old == new or (old.is_floating_point and new.is_floating_point):
            return image.to(new)
        if new.is_floating_point:
            return image.to(new) / _largest(old)
        if old.is_floating_point:
            return (image * (_largest(new) + 1.0 - 1e-3)).to(new)
        if _largest(old) > _largest(new):
            return image.div((_largest(old) + 1) // (_largest(new) + 1), rounding_mode="floor").to(new)
        return image.to(new) * ((_largest(new) + 1) // (_largest(old) + 1))

    batched = __call__

    def __repr__(self) -> str:
        return "ConvertImageDtype()"


class Lambda:
    """A function of the user's own, called with one sample at a time."""

    def __init__(self, lambd: Callable):
        if not callable(lambd):
            raise ArgumentError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: object):
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


def batched_form(transform: Callable) -> Callable | None:
    """Return what does the same to many samples at once, if there is such a form (see NOTE [Batched transforms])."""
    return getattr(transform, "batched", None)


def _largest(kind: dtype_kind) -> int:
    return 1 if kind.name == "bool" else int(np.iinfo(kind.numpy).max)


def _array_of(pic: object) -> np.ndarray:
    """Return an image as an array; what PIL makes is known by what every array library offers."""
    if isinstance(pic, TensorState) or not hasattr(pic, "__array_interface__"):
        raise ArgumentError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    image = np.asarray(pic)
    if image.ndim not in (GREY, COLOURED):
        raise ValueProblem(f"pic should be 2/3 dimensional. Got {image.ndim} dimensions.")
    return image


def _scaled(images: np.ndarray) -> Tensor:
    """Return bytes as numbers between 0 and 1 in the default dtype; other numbers as they are."""
    if images.dtype == uint8.numpy:
        kind = get_default_dtype().numpy
        return wrap(np.divide(images, kind.type(255), dtype=kind))
    return wrap(images)
