"""Which rule an op has: the one in the table, one that follows from its declaration, or the loop."""

from backlight.batching import (  # noqa: F401 - they fill the table
    dim_rules,
    index_rules,
    layer_rules,
    loss_rules,
    matrix_rules,
    product_rules,
    shape_rules,
)
from backlight.batching.elementwise import PLAIN, elementwise
from backlight.batching.looping import looped_op
from backlight.batching.table import RULES
from backlight.ops.composites import asks

_NOT_ELEMENTWISE = {"dim", "dims", "reduction", "axis"}


def rule_of(op):
    """Return the batching rule of an op."""
    rule = RULES.get(op.name)
    if rule is None:
        rule = RULES[op.name] = _derived(op)
    return rule


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
