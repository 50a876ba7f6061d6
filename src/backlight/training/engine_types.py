"""What recorders and the lens use of the objects of either engine, ours or PyTorch's."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class AnyTensor(Protocol):
    """A tensor."""

    shape: Sequence[int]
    dtype: Any
    requires_grad: bool
    is_leaf: bool
    grad: "AnyTensor | None"

    def detach(self) -> "AnyTensor":
        """Return it without its graph."""


class AnyNode(Protocol):
    """A node of a graph, a `grad_fn`; an AccumulateGrad has a `variable` too."""

    next_functions: "tuple[tuple[AnyNode | None, int], ...]"

    def name(self) -> str:
        """Return its type: `MulBackward0`."""


Gradients = Sequence[AnyTensor | None]


class AnyModule(Protocol):
    """A module."""

    def named_parameters(self) -> Iterator[tuple[str, AnyTensor]]:
        """Yield its parameters and those of the modules in it."""

    def named_modules(self) -> "Iterator[tuple[str, AnyModule]]":
        """Yield it and the modules in it."""


class AnyOptimizer(Protocol):
    """An optimizer."""

    param_groups: list[dict]
