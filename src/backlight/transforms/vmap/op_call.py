"""The table of batching rules (see NOTE [Batching rules]), and their argument: the call of an op."""

from collections.abc import Callable

from backlight.codegen.declaration import OPTION, Op
from backlight.dispatch.interpreters import Interpreter
from backlight.engine.tensor_state import TensorState
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched


class BatchedCall:
    """One call: the op, its public function, its arguments, and the vmap that runs its rule."""

    __slots__ = ("_given", "args", "function", "kwargs", "level", "op", "size")

    def __init__(self, level: Interpreter, op: Op, function: Callable, args: tuple, kwargs: dict):
        self.level = level
        self.size = level.size
        self.op = op
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self._given = None

    @property
    def given(self) -> dict:
        """The argument of each parameter, defaults included."""
        if self._given is None:
            params = self.op.params
            given = {param.name: param.default for param in params if param.has_default}
            given.update(zip([param.name for param in params], self.args))
            given.update(self.kwargs)
            self._given = given
        return self._given

    def __getitem__(self, name: str):
        return self.given[name]

    def is_batched(self, value: object) -> bool:
        """Tell whether a value is a batched tensor of this vmap."""
        return value.__class__ is BatchedTensor and value.level is self.level

    def below(self, value: object):
        """Return the physical tensor of a batched tensor of this vmap; another value as it is."""
        return value.physical if self.is_batched(value) else value

    def front(self, value: Tensor | None):
        """Return a tensor with the batch in front, repeated if it is not batched; None as it is."""
        if value is None:
            return None
        if self.is_batched(value):
            return value.physical
        return value.unsqueeze(0).expand((self.size, *value._data.shape))

    def padded(self, value: object, dims: int):
        """Like `below`, but with dims of size 1 inserted after the batch, so that an element has `dims` dims."""
        if not self.is_batched(value):
            return value
        missing = dims - value._data.ndim
        return value.physical if missing <= 0 else _padded(value.physical, missing)

    def front_padded(self, value: Tensor | None, dims: int):
        """Like `front`, but with dims of size 1 inserted after the batch, so that an element has `dims` dims."""
        if value is None:
            return None
        front, missing = self.front(value), dims - value._data.ndim
        return front if missing <= 0 else _padded(front, missing)

    def tensors(self) -> list:
        """Return the tensors among the inputs."""
        found = []
        for param in self.op.arrays:
            value = self.given[param.name]
            found += list(value) if param.kind == "arrays" else [value] if isinstance(value, TensorState) else []
        return found

    def run(self, **changed):
        """Call the op on the physical tensors, with some arguments changed, and return batched tensors."""
        return self.wrapped(self.run_below(**changed))

    def run_below(self, **changed):
        """Call the op on the physical tensors, with some arguments changed."""
        given, args, named = self.given, [], {}
        for param in self.op.params:
            name = param.name
            value = changed[name] if name in changed else given[name]
            if name not in changed and param.kind != OPTION:
                value = self.below_all(value)
            if param.keyword_only:
                named[name] = value
            else:
                args.append(value)
        return self.function(*args, **named)

    def below_all(self, value: object):
        """Like `below`, for lists too."""
        if value.__class__ is list or value.__class__ is tuple:
            return [self.below(one) for one in value]
        return self.below(value)

    def wrapped(self, result: object):
        """Return the result of an op, whose first dim is the batch, as batched tensors."""
        if isinstance(result, TensorState):
            return batched(result, self.level)
        if result.__class__ is tuple or result.__class__ is list:
            return tuple([batched(one, self.level) for one in result])
        if isinstance(result, tuple):
            return type(result)(*[batched(one, self.level) for one in result])
        return result

    def inside(self):
        """Return a context in which this vmap is active again, for a decomposition of the op."""
        return self.level.reenter()


def _padded(physical: Tensor, missing: int):
    shape = physical._data.shape
    return physical.view((shape[0], *(1,) * missing, *shape[1:]))


RULES: dict[str, Callable] = {}


def names_in(text: str) -> list[str]:
    """Return the names in a text, separated by white space."""
    return text.split()


def rule_for(*names: str):
    """Declare the decorated function to be the batching rule of the named ops; a text may hold several names.

    NOTE [Batching rules]
    A rule takes a BatchedCall and returns the op's result as batched tensors. The ops it calls run below its vmap: on
    tensors with the batch in front. Inside `call.inside()` a rule may instead decompose the op into others, each of
    which this vmap handles by its own rule. An op without a rule in the table gets one from its declaration (`_derived`
    in interpreter.py): elementwise ops are called once on aligned batches, and an op with a decomposition runs that,
    unless it takes what the forward kept (`residuals`), which a batched call does not have. For all others each element
    of the batch is computed by itself (`loop_over_op`), which is correct for any op.
    """

    def declare(function: Callable) -> Callable:
        for name in names_in(" ".join(names)):
            RULES[name] = function
        return function

    return declare
