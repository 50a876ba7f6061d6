"""The batching rule of an op: from the table, derived from its declaration, or the loop."""

from functools import cache

from backlight.codegen.declaration import Op
from backlight.codegen.decompositions import parameter_names
from backlight.system.fork_safety import import_unforked
from backlight.transforms.vmap.loop_fallback import loop_over_op
from backlight.transforms.vmap.op_call import RULES, Call
from backlight.transforms.vmap.rules.elementwise import PLAIN, elementwise

_NOT_ELEMENTWISE = {"dim", "dims", "reduction", "axis"}

# They fill the table; imported when an op first gets a batched tensor.
_RULES = ("dims", "indexing", "layers", "losses", "linalg", "shapes")


def rule_of(op: Op):
    """Return the batching rule of an op."""
    _fill_table()
    rule = RULES.get(op.name)
    if rule is None:
        rule = RULES[op.name] = _derived(op)
    return rule


@cache
def _fill_table() -> None:
    for family in _RULES:
        import_unforked(f"backlight.transforms.vmap.rules.{family}")


def _derived(op: Op):
    options = {param.name for param in op.params}
    if op.name in PLAIN or (op.promote and not options & _NOT_ELEMENTWISE):
        return elementwise
    if op.decomposed is not None and not set(op.keeps) & set(parameter_names(op.decomposed)):
        return by_decomposition
    return loop_over_op


def by_decomposition(call: Call):
    """Run the op's decomposition."""
    with call.inside():
        return call.op.decomposed(**call.given)
