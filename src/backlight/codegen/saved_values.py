"""What `grad_fn._saved_…` shows of a node."""

from backlight.codegen.runtime_support import (
    NOT_SAVED,
    check_saved,
    check_saved_outputs,
    constant,
    output_tensor,
    own_edge,
)
from backlight.engine.node import freed
from backlight.engine.saved_tensors import Packed, unpacked_list
from backlight.engine.tensor_state import TensorState


class SavedProperty(property):
    """Shows what nodes keep in `slot`, as PyTorch's `_saved_…` do.

    Not `__getattr__`: with it every attribute of a node, slots too, would take Python's slow path.
    """

    def __init__(self, slot: str):
        super().__init__(lambda node: saved_value(node, slot))
        self.slot = slot


def saved_value(node, slot: str):
    """Return what `grad_fn._saved_x` gives: a tensor that is still what it was, or an option."""
    value = getattr(node, slot)
    if slot not in node.freed_slots:
        return value
    if isinstance(value, Packed):
        return value.unpack(own_edge(node) if slot == "out" else None)
    if slot == "out":
        if isinstance(node.out, (list, tuple)):
            packed = any(isinstance(one, Packed) for one in node.out)
            return check_saved_outputs(node.unpacked() if packed else node, True)
        check_saved(node, "out")
        return output_tensor(node)
    if value is NOT_SAVED:
        return None
    if isinstance(value, TensorState):
        return value if value._was_detached else check_saved(node, slot)
    if value is None:
        left = [getattr(node, name) for name in node.freed_slots]
        if all(one is None or one is NOT_SAVED for one in left):
            raise freed(node)
        return None
    return type(value)(unpacked_list(value)) if isinstance(value, (list, tuple)) else constant(value)
