"""Which rule an op has: the one in the table, one that follows from its declaration, or the loop."""

from functools import cache

from backlight.batching.elementwise import PLAIN, elementwise
from backlight.batching.looping import looped_op
from backlight.batching.table import RULES
from backlight.fork_safety import import_unforked
from backlight.ops.composites import asks

_NOT_ELEMENTWISE = {"dim", "dims", "reduction", "axis"}

# They fill the table; imported when a batch first meets an op.
_ROOMS = ("dim_rules", "index_rules", "layer_rules", "loss_rules", "matrix_rules", "product_rules", "shape_rules")


def rule_of(op):
    """Return the batching rule of an op."""
    _fill_table()
    rule = RULES.get(op.name)
    if rule is None:
        rule = RULES[op.name] = _derived(op)
    return rule


@cache
def _fill_table() -> None:
    for room in _ROOMS:
        import_unforked(f"backlight.batching.{room}")


def _derived(op):
    options = {param.name for param in op.params}
    if op.name in PLAIN or (op.promote and not options & _NOT_ELEMENTWISE):
        return elementwise
    if op.composite is not None and not set(op.keeps) & set(asks(op.composite)):
        return composed
    return looped_op


def composed(call):
    """Write the op in other ops, as it declares."""
    with call.inside():
        return call.op.composite(**call.given)
