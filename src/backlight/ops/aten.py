"""PyTorch's names of ops, `torch.ops.aten.mm.default`: the arguments of selective checkpoint policies.

An op is called after its node, as PyTorch's nodes are called after its ops: `AddmmBackward0` is of `aten.addmm`, also
where `linear` made it. Overloads are not distinguished.
"""

import re
from functools import cache

from backlight.codegen.declaration import TABLE

_PRIVATE = {"softmax": "_softmax", "log_softmax": "_log_softmax"}


class OpOverload:
    """The name of an op, equal to every other overload's of that name."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def name(self) -> str:
        """Return `aten::mm`."""
        return f"aten::{self._name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __str__(self) -> str:
        return f"aten.{self._name}.default"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload='default')>"


class OpOverloadPacket:
    """All overloads of an op: `.default`, `.Tensor` and so on."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return OpOverload(self._name)

    def __str__(self) -> str:
        return f"aten.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


@cache
def overload_of(op) -> OpOverload:
    """Return the name of a declared op."""
    if not op.rules:
        return OpOverload(op.display_name)
    words = re.sub(r"Backward\d*$", "", op.node_name)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
    return OpOverload(_PRIVATE.get(name, name))


def __getattr__(name: str) -> OpOverloadPacket:
    if name.startswith("__") or all(overload_of(op)._name != name for op in TABLE.values()):
        raise AttributeError(
            f"no op here is called aten::{name}; nodes tell what ops are called (AddmmBackward0: addmm)"
        )
    return OpOverloadPacket(name)
