"""One `Case` says how an op is called; the tests in test_ops.py run it in every way that an op must stand.

    Case("tanh", lambda t, x: t.tanh(x), [normal(3, 4)])

`t` is backlight in one run and PyTorch in the other: the same expression, on the same numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

import backlight

FLOATS = ("float64", "float32", "float16", "bfloat16")
TOLERANCE = {"float64": (1e-10, 1e-12), "float32": (2e-5, 2e-6), "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2)}


@dataclass(frozen=True)
class Input:
    """One tensor argument: how its values are drawn, and whether it is differentiated."""

    draw: Callable[[np.random.Generator], np.ndarray]
    differentiable: bool = True


def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Input:
    """Values from a normal distribution."""
    return Input(lambda rng: rng.normal(shift, scale, shape))


def uniform(*shape: int, low: float, high: float) -> Input:
    """Values between two bounds: for ops with a domain."""
    return Input(lambda rng: rng.uniform(low, high, shape))


def away_from(*shape: int, points: tuple[float, ...] = (0.0,), distance: float = 0.1, scale: float = 1.5) -> Input:
    """Normal values that keep a distance from points where the op has a kink."""

    def draw(rng):
        values = rng.normal(0, scale, shape)
        for point in points:
            near = np.abs(values - point) < distance
            values = np.where(near, point + np.where(values >= point, 2 * distance, -2 * distance), values)
        return values

    return Input(draw)


def distinct(*shape: int) -> Input:
    """Values that all differ by at least 0.1: for max, sort, median."""
    return Input(lambda rng: rng.permutation(int(np.prod(shape))).reshape(shape) * 0.1 - 1.0)


def integers(*shape: int, low: int = 0, high: int = 5) -> Input:
    """int64 values in [low, high), which are not differentiated."""
    return Input(lambda rng: rng.integers(low, high, shape), differentiable=False)


def booleans(*shape: int) -> Input:
    """Random booleans."""
    return Input(lambda rng: rng.random(shape) < 0.5, differentiable=False)


def given(values, differentiable: bool = False) -> Input:
    """These very values."""
    return Input(lambda rng: np.array(values), differentiable=differentiable)


@dataclass(frozen=True)
class Case:
    """How one op is called, and in which ways it is tested.

    Args:
        name: `op` or `op/what is special`; the part before the slash is the op's name in the table.
        call: the expression, given a namespace and the tensors.
        inputs: the tensors.
        dtypes: float dtypes for forward parity.
        integer: whether integer and bool inputs give what PyTorch gives.
        differentiable: whether there is a derivative to test.
        second: whether gradgradcheck applies (False where PyTorch has no second derivative either is still tested
            numerically: set it only for ops whose derivative is constant or undefined).
        grad_parity: whether PyTorch can give the gradient.
        deterministic: False for ops that draw random numbers (only shapes are compared).
        tolerance: overrides the tolerance of a dtype.
    """

    name: str
    call: Callable
    inputs: list[Input] = field(default_factory=list)
    dtypes: tuple[str, ...] = FLOATS
    integer: bool = False
    differentiable: bool = True
    second: bool = True
    grad_parity: bool = True
    tolerance: dict = field(default_factory=dict)

    @property
    def op(self) -> str:
        return self.name.split("/")[0]

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [one.draw(rng) for one in self.inputs]

    def tensors(self, module, dtype: str = "float64", requires_grad: bool = False, arrays=None, cast=None) -> list:
        """Return the inputs as tensors of a module: floats in `dtype`, the rest as drawn (or all in `cast`)."""
        made = []
        for one, array in zip(self.inputs, self.arrays() if arrays is None else arrays):
            tensor = module.tensor(array.tolist(), dtype=getattr(module, str(array.dtype).replace("bool_", "bool")))
            tensor = tensor.reshape(array.shape)
            if array.dtype.kind == "f":
                tensor = tensor.to(getattr(module, cast or dtype))
                if requires_grad and one.differentiable:
                    tensor.requires_grad_()
            made.append(tensor)
        return made


def flat(result) -> list:
    """Return all tensors in a result, which may be nested in tuples and lists."""
    if isinstance(result, (backlight.Tensor, torch.Tensor)):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part)]
    return []


def as_array(tensor) -> np.ndarray:
    """Return a tensor of either kind as a float64, int64 or bool array."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach()
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    array = tensor.detach().numpy()
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def assert_same(ours, theirs, rtol: float, atol: float, what: str = "result") -> None:
    """Compare two results: structure, dtype, shape, values, NaN where NaN is."""
    mine, other = flat(ours), flat(theirs)
    assert len(mine) == len(other), f"{what}: {len(mine)} tensors, PyTorch gives {len(other)}"
    for a, b in zip(mine, other):
        assert str(a.dtype) == str(b.dtype), f"{what}: dtype {a.dtype}, PyTorch gives {b.dtype}"
        assert tuple(a.shape) == tuple(b.shape), f"{what}: shape {tuple(a.shape)}, PyTorch gives {tuple(b.shape)}"
        np.testing.assert_allclose(as_array(a), as_array(b), rtol=rtol, atol=atol, err_msg=what)
    if not mine:
        assert ours == theirs, f"{what}: {ours!r}, PyTorch gives {theirs!r}"
