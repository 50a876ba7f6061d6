"""PyTorch's `torch.autograd.graph`: nodes, edges, hooks on saved tensors, and versions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backlight.autograd.saved_hooks import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from backlight.dispatch.observation import count_write
from backlight.engine.node import GradientEdge, Node, public_edge
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, edge_of
from backlight.errors import GraphError
from backlight.system.lazy_import import names_later
from backlight.tensor.tensor import Tensor

if TYPE_CHECKING:
    from backlight.autograd.multi_grad_hooks import register_multi_grad_hook
    from backlight.autograd.mutation import allow_mutation_on_saved_tensors
    from backlight.autograd.nodes import nodes
    from backlight.autograd.paths import Path, path
    from backlight.autograd.saved_memory import Saved, saved

__all__ = [
    "GradientEdge",
    "Node",
    "Path",
    "Saved",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "nodes",
    "path",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved",
    "saved_tensors_hooks",
]

__getattr__, __dir__ = names_later(
    __name__,
    {
        "Path": "backlight.autograd.paths",
        "Saved": "backlight.autograd.saved_memory",
        "allow_mutation_on_saved_tensors": "backlight.autograd.mutation",
        "nodes": "backlight.autograd.nodes",
        "path": "backlight.autograd.paths",
        "register_multi_grad_hook": "backlight.autograd.multi_grad_hooks",
        "saved": "backlight.autograd.saved_memory",
    },
)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge that receives the gradient of `tensor`, to be used in place of the tensor in `grad`.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if tensor._edge is None:
        raise GraphError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients; call "
            "requires_grad_() on it first"
        )
    return GradientEdge(*public_edge(edge_of(tensor)))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to a tensor's memory that backlight did not see, so that backward detects it.

    Raises:
        RuntimeError: it is neither a tensor nor an iterable of tensors.
    """
    if not isinstance(tensor, Iterable):  # a tensor is one, too
        raise GraphError(f"increment_version expect a Iterable[Tensor] as input, got {type(tensor).__name__}")
    tensors = (tensor,) if isinstance(tensor, TensorState) else tuple(tensor)
    for one in tensors:
        if not isinstance(one, TensorState):
            raise GraphError(
                f"increment_version expects each element of the iterable to be a tensor, got {type(one).__name__}"
            )
    for one in tensors:
        count_write(one, "increment_version", user_place())
