"""`Variable`: the class of tensors that may require grad before PyTorch 0.4."""

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, GraphError
from backlight.tensor.tensor import Tensor

__all__ = ["Variable", "VariableMeta", "variable"]


class VariableMeta(type):
    """Makes `Variable(…)` return a tensor, and every tensor an instance of `Variable`."""

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        """Return an alias of the tensor that begins a new graph."""
        if not isinstance(data, TensorState):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TensorState)


class Variable(metaclass=VariableMeta):
    """The old name of a tensor that may require grad: `Variable(data, requires_grad)`."""


def variable(*args, **kwargs):
    """Raise, as PyTorch does: the legacy constructor."""
    raise GraphError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # also an attribute of the function, which hides the module of the same name
