"""The `op` decorator: an op is declared as a forward on arrays and one derivative for each input.

NOTE [Declaring an op]
    @op(promote="float")
    def tanh(xp, input):
        return xp.tanh(input)

    tanh.derivative("input", formula="grad · (1 − tanh(input)²)")(lambda grad, out: grad * (1 - out * out))

* `xp` is the array module. A parameter annotated `Array` (or not at all) is an array, one annotated `Array | None` an
  array that may be missing, `Arrays` a list of arrays; any other annotation marks an option.
* A derivative's parameters are exactly what the node keeps: `grad`, `out`, an input, an option, `x_shape` (the shape of
  input x), a value in `residuals`. It may also have `ops` (the op table, for the kind of value that the rule runs
  on) and `needs` (which of the inputs named in its decorator need a gradient, if it names several).
* A rule that is more than one expression is a function under `@tanh.derivative(…)`.
* A rule is plain expressions: it runs on arrays in an ordinary backward and on tensors under create_graph. A rule that
  takes `xp` runs on arrays only; its op declares a `decomposition` too, the same function written in other ops, which
  create_graph differentiates instead.
* For forward mode an op may name the form of its Jacobian (`tangent=`), or declare a tangent rule with the derivative
  (`@tanh.tangent("input")`): NOTE [Tangent rules] in codegen/pushforward.py. Without either, tangents are computed from
  the derivative.
* `complex=` says how the derivatives serve complex arrays: NOTE [Complex ops] in codegen/complex_ops.py. An op without
  it refuses them.
* What the decorator returns is the public function. Its code is generated at the first call (see codegen/generate.py).
"""

from collections.abc import Callable
from types import FunctionType

import numpy as np

from backlight.dispatch.dispatcher import call_op, dispatching
from backlight.errors import BacklightError
from backlight.kernels.native import core
from backlight.system.fork_safety import fork_safe_lock

HOLOMORPHIC, OWN = "holomorphic", "own"
ARRAY, OPTIONAL, ARRAYS, OPTION = "array", "optional", "arrays", "option"
LINEAR, MULTILINEAR, SYMMETRIC = "linear", "multilinear", "symmetric"

TABLE: dict[str, "Op"] = {}


class Array(np.ndarray):
    """Annotates an array: in a forward NumPy's, in a rule also a tensor (under create_graph)."""


class Arrays:
    """Annotates a forward's parameter that is a list of arrays."""


class Mask(np.ndarray):
    """Annotates a forward's parameter that is an array of bools: it broadcasts, and takes no part in promotion."""


KINDS = {
    None: ARRAY,
    Mask: ARRAY,
    Array: ARRAY,
    Array | None: OPTIONAL,
    Arrays: ARRAYS,
    "Array | None": OPTIONAL,
    "Arrays": ARRAYS,
}


class Param:
    """One parameter of an op: its name, its kind, its default (if `has_default`); whether it is a plain number."""

    __slots__ = ("name", "kind", "promoted", "number", "has_default", "default", "keyword_only")

    def __init__(self, name, annotation, has_default, default, keyword_only):
        self.name = name
        self.kind = KINDS.get(annotation, OPTION)
        self.promoted = annotation is not Mask
        self.number = annotation in (float, float | None)
        self.has_default = has_default
        self.default = default
        self.keyword_only = keyword_only


class Rule:
    """The derivative for one input, or for several at once."""

    __slots__ = ("inputs", "function", "formula", "parameters")

    def __init__(self, inputs, function, formula):
        self.inputs = inputs
        self.function = function
        self.formula = formula
        code = function.__code__
        self.parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class Op:
    """One row of the table of ops."""

    # (variant, namespace, laid_out) -> the function of a public one: codegen/generate.py puts it here
    generate: Callable

    def __init__(
        self,
        forward,
        *,
        name: str | None = None,
        node: str | None = None,
        promote: str | None = None,
        view: bool = False,
        residuals: tuple[str, ...] = (),
        outputs: int | str = 1,
        differentiable: tuple[int, ...] | None = None,
        returns=None,
        symbol: str | None = None,
        dtype_error=None,
        explain=None,
        tangent: str | None = None,
        tangent_with: dict | None = None,
        zero_derivative: tuple[str, ...] | dict[str, tuple[str, ...]] = (),
        complex: str | None = None,
        layout: str | None = None,
        called_as: tuple[int, ...] | None = None,
    ):
        self.forward = forward
        self.name = self.display_name = name or forward.__name__  # the name in reports
        self.node_name = node or camel(self.name) + "Backward0"
        self.promote = promote
        self.view = view
        self.residuals = residuals
        self.outputs = outputs
        self.differentiable = differentiable
        self.returns = returns
        self.symbol = symbol
        self.dtype_error = dtype_error
        self.accepted_dtypes = []  # dtypes that `dtype_error` has accepted; hashing one would cost more than comparing
        self.explain = explain
        self.called_as = called_as
        self.tangent_form = LINEAR if view else tangent
        self.tangent_with = tangent_with or {}
        self.zero_derivative = zero_derivative
        self.complex = complex
        elementwise = (promote or tangent == "symmetric") and not view
        layout = "elementwise" if layout is None and elementwise else layout
        self.layout = None if layout == "own" else layout
        self.rules: list[Rule] = []
        self.tangents = {}  # input -> the rule for its tangent
        self.decomposed = None
        self.dims = self.for_other_dims = None
        self.params = parameters_of(forward)

    @property
    def arrays(self) -> list[Param]:
        """The parameters that are tensors."""
        return [param for param in self.params if param.kind != OPTION]

    def derivative(self, *inputs: str, formula: str):
        """Declare the decorated function to be the derivative for the named inputs."""
        self._require_inputs(inputs)

        def declare(function):
            self.rules.append(Rule(inputs, function, formula))
            return function

        return declare

    def tangent(self, *inputs: str):
        """Declare the decorated function to give the output's tangent from that of each named input."""
        self._require_inputs(inputs)

        def declare(function):
            self.tangents |= dict.fromkeys(inputs, function)
            return function

        return declare

    def _require_inputs(self, names) -> None:
        known = {param.name for param in self.arrays}
        if not set(names) <= known:
            raise BacklightError(
                f"{self.name} has no array inputs {sorted(set(names) - known)}: it has {sorted(known)}"
            )
        if "grad" in known:
            raise BacklightError(
                f"an input of {self.name} must not be called grad: in rules that is the output's gradient"
            )

    def decomposition(self, function):
        """Declare the decorated function, of the op's own parameters, to be the op written in other ops."""
        self.decomposed = function
        return function

    def unless_dims(self, dims: int):
        """Declare the decorated function, of the same inputs, to be called unless each of them has so many dims."""

        def declare(function):
            self.dims, self.for_other_dims = dims, function
            return function

        return declare

    def formulas(self) -> dict[str, str]:
        """Return the formula of each input's derivative."""
        return {name: rule.formula for rule in self.rules for name in rule.inputs}


def parameters_of(forward) -> list[Param]:
    """Read the parameters of a forward, all but `xp`."""
    code = forward.__code__
    annotations = forward.__annotations__
    positional = code.co_argcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]
    defaults = dict(zip(reversed(names[:positional]), reversed(forward.__defaults__ or ())))
    defaults.update(forward.__kwdefaults__ or {})
    return [
        Param(name, annotations.get(name), name in defaults, defaults.get(name), place >= positional)
        for place, name in enumerate(names)
        if place
    ]


def camel(name: str) -> str:
    """Return `log_softmax` as `LogSoftmax`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def op(forward=None, **options):
    """Declare an op (see NOTE [Declaring an op]) and return its public function.

    Args:
        name: the op's name in the table; the function's own by default.
        node: the name of its node, PyTorch's for the same op; `SumBackward0` for an op called sum by default.
        promote: "same" converts the inputs to their common dtype, "float" also integers to floats; and broadcasts.
        view: the output shares memory with the first input.
        residuals: names of the values that the forward returns after its output, for the derivatives.
        outputs: how many outputs; "many" for a list whose length depends on the call.
        differentiable: which of several outputs have a gradient; all by default.
        returns: a class to wrap several outputs in.
        symbol: the Python operator, for the error message of a wrong operand.
        dtype_error: a function of the inputs' dtypes that returns PyTorch's error, or the text of a RuntimeError, if
            the op does not take them, else None.
        tangent: "linear", "multilinear" or "symmetric", see NOTE [Tangent rules].
        tangent_with: arguments that the op has instead of its own where it is run on tangents: what makes it linear.
        zero_derivative: inputs, or the output, that gradients depend on with a derivative of 0: all gradients or, in a
            dict, those of the inputs named: NOTE [Zero second derivatives].
        complex: "linear", "holomorphic" or "own", see NOTE [Complex ops]; without it complex arrays are refused.
        explain: a function of the arrays that raises PyTorch's error for their shapes, where NumPy raises ValueError.
        layout: how results lie in memory, see NOTE [Memory order of results]; "elementwise" for an op with `promote`
            or a symmetric Jacobian; "own" where the forward sees to it.
        called_as: the places of the arguments in the order of the function that users call, for reports; by default
            the op's own.
    """
    if forward is None:
        return lambda function: op(function, **options)
    name = options.get("name") or forward.__name__
    if name in TABLE:
        raise BacklightError(f"an op must have a name of its own, got {name!r} twice: {TABLE[name].forward.__module__}")
    declared = TABLE[name] = Op(forward, **options)
    declared.public = lazy_function(declared, "function")
    return declared.public


def lazy_function(declared: Op, variant: str) -> Callable:
    """Return the public function of an op, which generates its code when it is first called."""
    namespace = {"__name__": "backlight.ops.generated", "op": declared, "variant": variant}

    make = _function_of_core if core is not None else _function_without_core
    public = make(declared, lambda laid_out: declared.generate(variant, namespace, laid_out))
    public.__name__ = public.__qualname__ = declared.name
    public.__doc__ = declared.forward.__doc__
    public.__module__ = declared.forward.__module__
    if variant == "function":
        public.op = declared
        public.derivative = declared.derivative
        public.tangent = declared.tangent
        public.decomposition = declared.decomposition
        public.unless_dims = declared.unless_dims
    return public


def _function_of_core(declared: Op, generate: Callable[[bool], FunctionType]) -> Callable:
    """Return a function of the core, which stands for the generated one from its first call on.

    Results are laid out by another generated function, which the core calls for arrays that do not lie row by row.
    """
    laid_out: FunctionType | None = None

    def generated(of_others: bool) -> FunctionType:
        made = generate(of_others)
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(made, name, getattr(public, name))
        made.__dict__.update(public.__wrapped__.__dict__)
        core.core_implement(public, made, of_others)
        return made

    def first_call(*args, **kwargs):
        with _building:  # once for all threads
            if public.__wrapped__ is first_call:
                generated(False)
        return public.__wrapped__(*args, **kwargs)

    def first_call_of_others(*args, **kwargs):
        nonlocal laid_out
        with _building:
            laid_out = laid_out or generated(True)
        return laid_out(*args, **kwargs)

    public = core.core_function(first_call, declared)
    if declared.layout is not None:
        core.core_implement(public, first_call_of_others, True)
    return public


def _function_without_core(declared: Op, generate: Callable[[bool], FunctionType]) -> FunctionType:
    generated: FunctionType | None = None

    def public(*args, **kwargs):
        nonlocal generated
        if generated is None:
            with _building:
                generated = public.__wrapped__ = generated or generate(True)
        if dispatching.active:
            return call_op(declared, public, generated, args, kwargs)
        return generated(*args, **kwargs)

    return public


def operator_of(public: Callable) -> Callable:
    """Return the same op for use as a Python operator: a foreign operand gives NotImplemented."""
    return lazy_function(public.op, "operator")


_building = fork_safe_lock()
