"""`checkpoint(debug=True)`: if a recomputation differs, the error lists the ops of both runs, with lines."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

from backlight.dispatch.dispatcher import interpreting
from backlight.dispatch.interpreters import Interpreter
from backlight.dtypes import from_numpy_dtype
from backlight.engine.provenance import describe_place, user_place
from backlight.engine.tensor_state import TensorState
from backlight.kernels.state_blocks import block
from backlight.transforms.checkpoint.recomputation import CheckpointError

TEMPLATE = """ \
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

Operations executed during the original forward:

{forward}

Operations executed during recomputation:

{again}

 ERROR: Detected non-determinism while running activation checkpointing

 {first}
 The operations are listed above in the order in which they ran, each with its line. Where the two lists part, the
 function did something else the second time: it must compute from its arguments and from random numbers only.
"""


class _OpRecorder(Interpreter):
    """Records each op with its inputs and its line."""

    __slots__ = ("lines",)

    def __init__(self, lines: list[str]):
        self.lines = lines

    def op(self, op, function, args: tuple, kwargs: dict):
        """Record the op, and run it."""
        inputs = ", ".join(_describe(one) for one in (*args, *kwargs.values()))
        self.lines.append(f"{op.name}({inputs})   {describe_place(*user_place())}")
        return function(*args, **kwargs)


def _describe(value) -> str:
    if isinstance(value, TensorState):
        kind = str(from_numpy_dtype(value._data.dtype)).removeprefix("torch.")
        return f"{kind}{list(value._data.shape)}"
    return type(value).__name__ if isinstance(value, (list, tuple, dict)) else repr(value)


class OpLog:
    """The ops of a checkpoint's forward and of its recomputation."""

    def __init__(self):
        self.forward: list[str] = []
        self.again: list[str] = []

    def contexts(self) -> tuple[AbstractContextManager, AbstractContextManager]:
        """Return the two contexts that record the ops."""
        return interpreting(_OpRecorder(self.forward)), self._record_again()

    @block
    def _record_again(self) -> Iterator[None]:
        self.again.clear()
        with interpreting(_OpRecorder(self.again)):
            yield

    def explain(self, problem: CheckpointError) -> None:
        """Raise the error with the logs."""
        pairs = zip([*self.forward, None], [*self.again, None])
        at = next((n for n, (one, other) in enumerate(pairs) if one != other), len(self.forward))
        same = at >= len(self.forward) and at >= len(self.again)
        first = "Both ran the same operations." if same else f"They differ from operation {at + 1} on."
        raise CheckpointError(
            TEMPLATE.format(forward="\n".join(self.forward), again="\n".join(self.again), first=first)
        ) from problem
