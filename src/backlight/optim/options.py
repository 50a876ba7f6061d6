"""The options of optimizers, checked when one is made and read when it steps, and the state of their parameters."""

from collections.abc import Sized
from types import NoneType

import numpy as np

from backlight.dtypes import get_default_dtype
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import ArgumentError, DimError, GraphError, ValueProblem
from backlight.kernels.elementwise.complex_parts import parts_of
from backlight.tensor.tensor import Tensor

NUMBERS = ("step", "mu_product", "eta", "mu")  # the entries of a state that are one number
SWITCHES = frozenset(["amsgrad", "capturable", "differentiable", "foreach", "fused", "maximize", "nesterov"])


def given_options(arguments: dict) -> dict:
    """Return the options of an optimizer among the local names of its `__init__`."""
    options = arguments.copy()
    del options["self"], options["params"], options["__class__"]  # which every function with super() has
    return options


def checked(arguments: dict, *not_negative: str, last: str = "") -> dict:
    """Check the options of an optimizer, which are the defaults of its groups, and return them.

    Args:
        arguments: the local names of `__init__`; `betas`, `foreach`, `fused` and `differentiable` are checked where
            they are among them.
        not_negative: names of options that must be 0 or more; `lr` always must.
        last: names that come last, in this order, in the dict that PyTorch shows; the others keep that of `__init__`.

    Raises:
        ValueError: a number is out of its range, or a tensor has several elements.
        RuntimeError: options contradict each other.
    """
    options = given_options(arguments)
    rate = options["lr"]
    require_single(rate)
    if not 0.0 <= rate:  # noqa: SIM300 - the order that Python's message about strings names
        raise ValueProblem(f"Invalid learning rate: {rate}")
    for name in not_negative:
        if not options[name] >= 0.0:
            raise ValueProblem(f"Invalid {'epsilon' if name == 'eps' else name} value: {options[name]}")
    if "betas" in options:
        _check_betas(options["betas"], bool(options.get("foreach")) and options.get("capturable") is False)
        options["betas"] = tuple(number(beta) for beta in options["betas"])
    for name in SWITCHES & options.keys():
        if not isinstance(options[name], (bool, int, np.bool_, NoneType)):
            raise ArgumentError(f"{name} must be True, False or None, not {type(options[name]).__name__}")
    if isinstance(rate, TensorState) and options.get("foreach") and options.get("capturable") is False:
        if "amsgrad" in options:
            raise ValueProblem("lr as a Tensor is not supported for capturable=False and foreach=True")
    if options.get("fused") and options.get("differentiable"):
        raise GraphError("`fused` does not support `differentiable`")
    if options.get("foreach") and options.get("fused"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for name in last.split():
        options[name] = options.pop(name)
    return options


def require_single(rate: float | TensorState) -> None:
    """Raise unless a learning rate is one number."""
    if isinstance(rate, TensorState) and rate.numel() != 1:
        raise ValueProblem("Tensor lr must be 1-element")


def _check_betas(betas: tuple, refuses_tensors: bool) -> None:
    """Raise unless the rates of running averages are valid."""
    if isinstance(betas, Sized) and len(betas) < 2:
        raise DimError(f"{type(betas).__name__} index out of range: betas must be two numbers, got {betas}")
    betas = (betas[0], betas[1])
    for place, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueProblem(f"Invalid beta parameter at index {place}: {beta}; it must be in [0, 1)")
    if len({isinstance(beta, TensorState) for beta in betas}) > 1:
        raise ValueProblem("betas must be either both floats or both Tensors")
    for place, beta in enumerate(betas):
        if isinstance(beta, TensorState):
            if refuses_tensors:
                raise ValueProblem(f"betas[{place}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueProblem(f"Tensor betas[{place}] must be 1-element")


def number(value: float | TensorState) -> float:
    """Return an option that may be a tensor of one element as a Python number."""
    return value.item() if isinstance(value, TensorState) else value


def direction(group: dict) -> tuple[int, float]:
    """Return a group's sign of the gradient, and its weight decay."""
    decay = 0 if group.get("decoupled_weight_decay") else number(group["weight_decay"])
    return -1 if group["maximize"] else 1, decay


def differentiable_gradient(param: Tensor, grad: Tensor, group: dict) -> Tensor:
    """Return what a differentiable step takes as the gradient: with its sign, and with the weight decay.

    A decoupled weight decay shrinks the parameter instead.
    """
    grad = -grad if group["maximize"] else grad
    decay = group.get("weight_decay", 0)
    if not isinstance(decay, TensorState) and decay == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * decay)
        return grad
    return grad + decay * param.clone()


def decay_factor(group: dict) -> float:
    """Return the factor of a group's decoupled weight decay at each step."""
    return 1 - number(group["lr"]) * number(group["weight_decay"]) if group["decoupled_weight_decay"] else 1


def scalar(value: float) -> Tensor:
    """Return a number of an optimizer's state: a 0-d tensor, float32 unless the default dtype is float64."""
    kind = np.float64 if get_default_dtype().numpy == np.float64 else np.float32
    return wrap(kind(value))


def parts(tensor: Tensor) -> np.ndarray:
    """Return a tensor's array, which may be written to; of complex numbers their parts: NOTE [Complex parameters]."""
    return parts_of(writable(tensor))


def filled_like(param: Tensor, value: float) -> Tensor:
    """Return a tensor of a parameter's shape and dtype, filled with a number, of complex ones in both parts."""
    made = wrap(np.empty_like(writable(param)))
    parts(made)[...] = value
    return made


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros of a parameter's shape and dtype."""
    return wrap(np.zeros_like(writable(param)))


def init_state(state: dict, param: Tensor, *names: str, **others) -> None:
    """Initialise a parameter's state: a count of 0, other numbers, zeros under names, and other entries."""
    numbers = {name: others.pop(name) for name in NUMBERS if name in others}
    state.update({"step": scalar(0), **numbers, **{name: zeros_like(param) for name in names}, **others})


def numbers_as_tensors(state: dict) -> None:
    """Replace the numbers of a parameter's state, plain in old state dicts, by tensors."""
    for name in NUMBERS:
        if name in state and not isinstance(state[name], TensorState):
            state[name] = scalar(float(state[name]))


def count_step(state: dict) -> float:
    """Increment the step count of a parameter's state, and return it."""
    step = state["step"]
    if not isinstance(step, TensorState):  # as in old state dicts
        step = state["step"] = scalar(step)
    step._data = step._data + step._data.dtype.type(1)
    return float(step._data)
