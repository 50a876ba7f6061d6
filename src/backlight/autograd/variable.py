"""`Variable`: what tensors that may require grad were called before PyTorch 0.4."""

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, GraphError
from backlight.tensor.tensor import Tensor

__all__ = ["Variable", "VariableMeta", "variable"]


class VariableMeta(type):
    """Make a tensor where `Variable` is called, and take every tensor as its instance."""

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        """Return a tensor over the same memory that begins a graph of its own."""
        if not isinstance(data, TensorState):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, TensorState)


class Variable(metaclass=VariableMeta):
    """The old name of a tensor that may require grad: `Variable(data, requires_grad)`."""


def variable(*args, **kwargs):
    """Refuse, as PyTorch does: what made Variables once."""
    raise GraphError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # found here, too, since the function hides the module of its name
