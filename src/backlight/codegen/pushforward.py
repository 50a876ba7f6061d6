"""The tangent of an op's output from those of its inputs: J · t, where the op's derivatives give Jᵀ · grad.

NOTE [Tangent rules]
For each input with a tangent, the first of these that exists gives its share, and the shares are added:

1. its own rule, declared with the derivative, whose parameters are those of a derivative with `tangent` for `grad`,
   and that returns the tangent of the output, or one for each of several (None where there is none):

       @log_softmax.tangent("input")
       def log_softmax_input_tangent(tangent, out, dim, ops):
           return tangent - (ops.exp(out) * tangent).sum(dim, True)

2. what the op declares with `@op(tangent=…)`:
   "linear"         it is linear in its differentiable inputs together: the op itself, run on the tangents (zeros for
                    inputs that have none). Every view is. The arguments that make it linear (a filling of 0, no bias)
                    are in `tangent_with`.
   "multilinear"    it is linear in each of them while the others are fixed: the op itself, with the tangent in place
                    of the input.
   "symmetric"      each input's Jacobian is symmetric, once the inputs are broadcast to one shape, as that of an
                    elementwise op is: the derivative, with the tangent in place of the gradient.
3. the op's decomposition, where it has one: the rules of the ops in it.
4. else J · t comes from the derivative alone: Jᵀ · u is linear in u, so its own derivative for u, weighted by t, is it.

All rules call ops on tensors, so that levels of forward mode outside this one, and backward, differentiate them again.
"""

from collections.abc import Callable, Iterable

import numpy as np

from backlight.codegen import runtime_support
from backlight.codegen.declaration import ARRAY, ARRAYS, LINEAR, MULTILINEAR, OWN, SYMMETRIC, Op, Param
from backlight.codegen.decompositions import parameter_names
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dtypes import from_numpy_dtype
from backlight.engine import run_backward
from backlight.engine.grad_mode import enable_grad, modes
from backlight.engine.node import next_sequence
from backlight.engine.tensor_state import LEAF, Gradient, TensorState, edge_of, wrap
from backlight.errors import UnsupportedError
from backlight.ops.type_promotion import has_gradient


def _unwritten(name: str):
    return f"Trying to use forward AD with {name} that does not support it because it has not been implemented yet."


def _unsupported(name: str):
    return f"Trying to use forward AD with aten::{name} that does not support it."


# Ops without a derivative whose results change with their inputs: the error's text for a call's arguments.
REFUSED = {
    "floor_divide": lambda given: _unsupported("floor_divide") + " div(…, rounding_mode='floor') has a tangent, 0",
    "geqrf": lambda given: _unwritten("geqrf") + "\n  linalg.qr has a tangent",
    "heaviside": lambda given: _unsupported("heaviside") + " Detach its arguments: its slope is 0",
    "linalg_ldl_factor_ex": lambda given: _unsupported("linalg_ldl_factor_ex") + " linalg.cholesky has a tangent",
    "unique": lambda given: _unwritten("_unique2") + "\n  Sort, which has a tangent, or detach",
    "unique_dim": lambda given: _unwritten("unique_dim") + "\n  Sort, which has a tangent, or detach",
    "unique_consecutive": lambda given: (
        _unwritten("unique_consecutive" if given["dim"] is None else "unique_dim_consecutive")
        + "\n  Detach the tensor, or pick its elements by index"
    ),
}


class PushforwardCall:
    """One call of an op: its arguments by name, its outputs, and the tangents of its differentiable inputs."""

    def __init__(self, level: object, op: Op, function: Callable, args: tuple, kwargs: dict, outs: tuple):
        self.level, self.op, self.function, self.outs = level, op, function, outs
        self.values = _arguments_by_name(op, args, kwargs)
        self.differentiable = [p for p in op.arrays if any(p.name in rule.inputs for rule in op.rules)]
        found = {p.name: self.tangent(p) for p in self.differentiable}
        self.tangents = {name: tangent for name, tangent in found.items() if tangent is not None}

    def tangent(self, param: Param):
        """Return the tangent of an input, or None; of a list of tensors, a list."""
        value = self.values[param.name]
        if param.kind != ARRAYS:
            return None if value is None else self.level.tangent_of(value)
        found = [self.level.tangent_of(one) for one in value]
        return found if any(one is not None for one in found) else None

    def requires_grad(self) -> bool:
        """Tell whether the outputs' tangents depend on anything that requires grad."""
        given = [self.values[p.name] for p in self.op.arrays] + list(self.tangents.values())
        given = [one for part in given for one in (part if isinstance(part, (list, tuple)) else (part,))]
        return any(one is not None and one._edge is not None for one in given)

    def is_complex(self) -> bool:
        """Tell whether an input or an output holds complex numbers."""
        given = [self.values[p.name] for p in self.op.arrays] + list(self.outs)
        given = [one for part in given for one in (part if isinstance(part, (list, tuple)) else (part,))]
        return any(one is not None and one._data.dtype.kind in "cW" for one in given)

    def numbers(self) -> tuple[int, ...]:
        """Return which outputs have a gradient."""
        return tuple(range(len(self.outs))) if self.op.differentiable is None else self.op.differentiable

    def places(self) -> tuple[int, ...]:
        """Return which outputs can have tangents."""
        return tuple(number for number in self.numbers() if has_gradient(self.outs[number]._data.dtype))

    def run_on(self, values: dict):
        """Run the op on other arguments; return its outputs."""
        positional = [values[p.name] for p in self.op.params if not p.keyword_only]
        out = self.function(*positional, **{p.name: values[p.name] for p in self.op.params if p.keyword_only})
        return (out,) if isinstance(out, TensorState) else tuple(out)

    def arguments(self, names: Iterable[str], **more):
        """Return the arguments that a rule takes, by name."""
        return {name: more[name] if name in more else self.known(name) for name in names}

    def known(self, name: str):
        """Return a parameter of a derivative by name; inputs count as having the output's shape (see "symmetric")."""
        if name in self.values:
            return self.values[name]
        if name == "ops":
            return TENSOR_OPS
        if name == "out":
            return self.outs[0] if self.op.outputs == 1 else list(self.outs)
        raise KeyError(f"a tangent rule of {self.op.name} asks for {name}")


def tangents_of_outputs(level: object, op: Op, function: Callable, args: tuple, kwargs: dict, outs: tuple) -> list:
    """Return the tangent of each output of a call, None for those that have none."""
    call = PushforwardCall(level, op, function, args, kwargs, outs)
    if op.name in REFUSED:
        raise UnsupportedError(REFUSED[op.name](call.values))
    places = call.places()
    if not call.tangents or not places:
        return [None] * len(outs)
    shares = _shares(call)
    return [
        _total([share[number] for share in shares], one) if number in places else None
        for number, one in enumerate(outs)
    ]


def _shares(call: PushforwardCall) -> list[tuple]:
    """Return what the inputs' tangents contribute to the outputs', one tuple for each input or group of them."""
    op, rest, shares = call.op, dict(call.tangents), []
    if op.complex == OWN and op.tangent_form not in (LINEAR, MULTILINEAR) and call.is_complex():
        return [_by_transposing(call, rest)]  # its tangent rule, if it has one, is for real numbers
    for name in [name for name in rest if name in op.tangents]:
        shares.append(_by_rule(call, name, rest.pop(name)))
    if not rest:
        return shares
    if op.tangent_form is not None:
        return shares + _FORMS[op.tangent_form](call, rest)
    return [*shares, (_by_decomposition if op.decomposed is not None else _by_transposing)(call, rest)]


def _total(shares: list, out: TensorState):
    """Add up the shares that exist, in the shape and dtype of an output; zeros if none exists."""
    present = [share for share in shares if share is not None]
    if not present:
        return TENSOR_OPS.filling_zeros(out)
    total = present[0]
    for share in present[1:]:
        total = total + share
    if total.shape != out.shape:
        total = TENSOR_OPS.expand(total, tuple(out.shape))
    return total if total._data.dtype == out._data.dtype else TENSOR_OPS.to_copy(total, out._data.dtype)


def _by_rule(call: PushforwardCall, name: str, tangent: TensorState | None) -> tuple:
    rule = call.op.tangents[name]
    shapes = {f"{p.name}_shape": _shape(call.values[p.name]) for p in call.op.arrays if p.kind == ARRAY}
    found = rule(**call.arguments(parameter_names(rule), tangent=tangent, **shapes))
    return found if isinstance(found, (tuple, list)) else (found,)


def _shape(value: object):
    return None if value is None else tuple(value.shape)


def _linear(call: PushforwardCall, tangents: dict) -> list[tuple]:
    """Run the op on the tangents of all its differentiable inputs."""
    values = dict(call.values)
    for p in call.differentiable:
        given = tangents.get(p.name)
        if p.kind == ARRAYS:
            given = given or [None] * len(values[p.name])
            values[p.name] = [_or_zeros(one, value) for one, value in zip(given, values[p.name])]
        elif values[p.name] is not None:
            values[p.name] = _or_zeros(given, values[p.name])
    return [call.run_on(values | call.op.tangent_with)]


def _or_zeros(tangent: TensorState | None, value: object):
    return TENSOR_OPS.filling_zeros(value) if tangent is None else tangent


def _multilinear(call: PushforwardCall, tangents: dict) -> list[tuple]:
    """Run the op once for each tangent, with it in place of its input."""
    shares, values = [], call.values | call.op.tangent_with
    for name, tangent in tangents.items():
        if not isinstance(tangent, list):
            shares.append(call.run_on({**values, name: tangent}))
            continue
        given = values[name]
        for place, one in enumerate(tangent):
            if one is not None:
                shares.append(call.run_on({**values, name: [*given[:place], one, *given[place + 1 :]]}))
    return shares


def _symmetric(call: PushforwardCall, tangents: dict) -> list[tuple]:
    """Run the derivative of each input on its tangent, broadcast and cast to what the output is."""
    (out,) = call.outs
    return [(_symmetric_share(call, name, _total([tangent], out), out),) for name, tangent in tangents.items()]


def _symmetric_share(call: PushforwardCall, name: str, tangent: TensorState | None, out: TensorState):
    rule = next(rule for rule in call.op.rules if name in rule.inputs)
    alike = {f"{p.name}_shape": tuple(out.shape) for p in call.op.arrays}
    alike |= {f"{p.name}_dtype": out._data.dtype for p in call.op.arrays}
    needs = tuple(one == name for one in rule.inputs)
    found = rule.function(**call.arguments(rule.parameters, grad=tangent, needs=needs, **alike))
    return found if len(rule.inputs) == 1 else found[rule.inputs.index(name)]


_FORMS = {LINEAR: _linear, MULTILINEAR: _multilinear, SYMMETRIC: _symmetric}


def _by_decomposition(call: PushforwardCall, tangents: dict) -> tuple:
    """Run the decomposition inside the level, so that its ops get tangents."""
    kept = [name for name in call.op.residuals if name in parameter_names(call.op.decomposed)]
    kept = _kept_values(call, kept) if kept else {}
    with call.level.reenter():
        found = call.op.decomposed(**call.values, **kept)
    found = (found,) if isinstance(found, TensorState) else tuple(found)
    return tuple(call.level.tangent_of(one) if isinstance(one, TensorState) else None for one in found)


def _kept_values(call: PushforwardCall, names: list) -> dict:
    """Return values that the forward computes for its derivatives."""
    node = _recorded(call, call.tangents)[0]
    return {name: runtime_support.constant(getattr(node, name)) for name in names}


def _by_transposing(call: PushforwardCall, tangents: dict) -> tuple:
    """Return the derivative for u of Σ ⟨Jᵀ · u, t⟩, which is J · t."""
    recorded, places, since = modes.grad_enabled and call.requires_grad(), call.places(), next_sequence()
    with enable_grad():
        node, given = _recorded(call, tangents, attached=recorded)
        weights = [wrap(np.zeros(one._data.shape, one._data.dtype), LEAF) for one in call.outs]
        arriving = [weights[number] for number in call.numbers()]
        edges = [None if tangent is None else edge for edge, tangent in zip(node.edges, given)]
        gradients = node.backward_graph(arriving if node.outputs > 1 else arriving[0], edges)
        pairs = [(g, t) for g, t in zip(gradients, given) if g is not None and t is not None and g._edge is not None]
    if not pairs:
        return (None,) * len(call.outs)
    roots = [edge_of(g) for g, _ in pairs]
    starts = [t if t._data.dtype == g._data.dtype else t.to(from_numpy_dtype(g._data.dtype)) for g, t in pairs]
    found = run_backward.run(
        roots,
        starts if run_backward.runs_on_tensors(recorded) else [t._data for t in starts],
        retain_graph=False,
        create_graph=recorded,
        inputs=[weights[number] for number in places],
        since=since,
    )
    by_place = dict(zip(places, found))
    return tuple(_as_tensor(by_place.get(number)) for number in range(len(call.outs)))


def _as_tensor(found: Gradient | None):
    return found if found is None or isinstance(found, TensorState) else wrap(found)


def _recorded(call: PushforwardCall, tangents: dict, *, attached: bool = False) -> tuple:
    """Run the op again, recorded, on aliases of its inputs; return its node and the tangent of each edge."""
    values, given = dict(call.values), []
    for p in call.differentiable:
        value, tangent = values[p.name], tangents.get(p.name)
        if p.kind == ARRAYS:
            tangent = tangent or [None] * len(value)
            values[p.name] = [_differentiable_alias(one, t, attached) for one, t in zip(value, tangent)]
            given += tangent
        else:
            values[p.name] = _differentiable_alias(value, tangent, attached)
            given.append(tangent)
    with enable_grad():
        outs = call.run_on(values)
    return outs[call.numbers()[0]].grad_fn, given


def _differentiable_alias(value: object, tangent: TensorState | None, attached: bool):
    """Return an input, or if it has a tangent an alias to differentiate: a leaf or (`attached`) part of the graph."""
    if value is None or tangent is None:
        return value
    if attached and value._edge is not None:
        return TENSOR_OPS.alias(value)
    alias = wrap(value._data, LEAF, value._storage)
    alias._tangents = value._tangents
    return alias


def _arguments_by_name(op: Op, args: tuple, kwargs: dict) -> dict:
    """Return a call's arguments by name, numbers and arrays as tensors where the op makes tensors of them."""
    values = {p.name: p.default for p in op.params if p.has_default}
    values |= zip((p.name for p in op.params), args)
    values |= kwargs
    names = [p.name for p in op.arrays if p.kind == ARRAY]
    given = [values[name] for name in names]
    if not all(isinstance(one, TensorState) for one in given):
        values |= zip(names, runtime_support.coerce(op, "function", given))
    return values
