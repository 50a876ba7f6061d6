"""`checkpoint` saves memory: it keeps a function's inputs, and recomputes in backward the tensors that this needs.

See NOTE [Recomputation] in transforms/checkpoint/recomputation.py for the form without re-entry. The re-entrant form is
one node, whose backward runs the function again and starts a backward of its own.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from backlight.amp.autocasting import autocast_again
from backlight.autograd.api import backward
from backlight.autograd.function import Function, FunctionCtx
from backlight.codegen.declaration import Op
from backlight.dispatch.arguments.checked import unwrapped, with_checks
from backlight.dispatch.dispatcher import interpreting
from backlight.dispatch.interpreters import Interpreter
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import enable_grad, modes, no_grad
from backlight.engine.graph_task import count_tasks, current_task
from backlight.engine.provenance import describe_place, user_place
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
from backlight.kernels.state_blocks import block
from backlight.nn.modules.container import Sequential
from backlight.ops.elementwise.comparisons import equal
from backlight.system.fork_safety import fork_safe_lock
from backlight.tensor.generators import fork_rng, get_rng_state, set_rng_state
from backlight.transforms.checkpoint.recomputation import CheckpointError, Frame, GraphExecGroup, checkpoint_hooks
from backlight.transforms.checkpoint.selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

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

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Record the op, and run it."""
        inputs = ", ".join(_describe(one) for one in (*args, *kwargs.values()))
        self.lines.append(f"{op.name}({inputs})   {describe_place(*user_place())}")
        return function(*args, **kwargs)


def _describe(value: object) -> str:
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


PASS_USE_REENTRANT = (
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
    "use_reentrant=True. Refer to docs for more details on the differences between the two variants."
)


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """Return two contexts that do nothing, for the forward and for the recomputation."""
    return nullcontext(), nullcontext()


class _Settings:
    """Overrides of the arguments of `checkpoint`, set by blocks; None for no override."""

    debug: bool | None = None
    early_stop: bool | None = None


@block
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Override `debug` of each checkpoint called inside the block; None does not."""
    before = _Settings.debug
    try:
        _Settings.debug = enabled
        yield
    finally:
        _Settings.debug = before


@block
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Override `early_stop` of each checkpoint called inside the block."""
    before = _Settings.early_stop
    try:
        _Settings.early_stop = enable
        yield
    finally:
        _Settings.early_stop = before


CHECKS: dict[str, Callable] = {  # what must be the same of saved and of recomputed tensors
    "default": lambda tensor: {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device},
    "none": lambda tensor: None,
}


def checkpoint(
    function: Callable,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs,
):
    """Return `function(*args, **kwargs)`, keeping for backward only the arguments: it is run again when needed.

    Args:
        function: the function to run; it must be deterministic.
        use_reentrant: False, as recommended: the call is recorded, and its saved tensors are recomputed. True: it is
            one node whose backward starts another backward; then only positional tensors get gradients, and
            `grad()` and `inputs=` cannot be used.
        context_fn: returns two contexts, for the forward and for the recomputation.
        determinism_check: "default" compares shape and dtype of saved and of recomputed tensors; "none" does
            not.
        debug: let errors list the ops that ran in the forward and in the recomputation.
        early_stop: stop the recomputation as soon as all needed tensors are recomputed.
        preserve_rng_state: draw the same random numbers again.

    Raises:
        CheckpointError: in backward, if the recomputed tensors differ.
        ValueError: arguments contradict each other.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            f"calling checkpoint without use_reentrant will raise an exception. {PASS_USE_REENTRANT}",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        frame, log = _frame(function, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop)
        return _recorded(frame, log, function, args, kwargs)
    if kwargs:
        raise ValueProblem(
            "Unexpected keyword arguments: " + ",".join(kwargs) + "; with use_reentrant=False they may be"
        )
    if unwrapped(context_fn) is not unwrapped(noop_context_fn) or debug is not False:
        raise ValueProblem("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _frame(
    function: Callable,
    kwargs: dict,
    preserve_rng_state: bool,
    context_fn: Callable,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
):
    """Return the frame of a call, the log of its ops (or None), and the context of its forward."""
    log = None
    if debug if _Settings.debug is None else _Settings.debug:
        if unwrapped(context_fn) is not unwrapped(noop_context_fn):
            raise ValueProblem("debug=True is incompatible with non-default context_fn")
        log = OpLog()
        context_fn = log.contexts
    if determinism_check not in CHECKS:
        raise ValueProblem(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    forward_context, again_context = context_fn()
    rng_replay = _RngReplay() if preserve_rng_state else None
    casts = autocast_again()

    def recompute(*args):
        with nullcontext() if rng_replay is None else rng_replay.replay(), casts(), again_context:
            function(*args, **kwargs)

    stops = early_stop if _Settings.early_stop is None else _Settings.early_stop
    frame = Frame(recompute, stops, CHECKS[determinism_check])
    frame.forward_context, frame.rng_replay = forward_context, rng_replay
    return frame, log


class _RngReplay:
    """Replays the random numbers of a forward; does nothing if it drew none.

    The default generator is shared by all threads, so only one may replay at a time.
    """

    lock = fork_safe_lock(waited_for=False)

    def __init__(self):
        self.state = get_rng_state()
        self.any = True

    def ended(self) -> None:
        """Record, at the end of the forward, whether it drew any."""
        self.any = not equal(self.state, get_rng_state())

    @block
    def replay(self) -> Iterator[None]:
        """Draw the same numbers inside the block, and restore the generator afterwards."""
        if not self.any:
            yield
            return
        with self.lock, fork_rng():
            set_rng_state(self.state)
            yield


def _recorded(frame: Frame, log: OpLog | None, function: Callable, args: tuple, kwargs: dict):
    """Run a checkpointed function without keeping the tensors that it saves."""
    if not modes.grad_enabled:
        return function(*args, **kwargs)
    frame.keep_arguments(args)
    with checkpoint_hooks(frame, None if log is None else log.explain), frame.forward_context:
        out = function(*args, **kwargs)
        frame.completed = True
    if frame.completed and frame.rng_replay is not None:
        frame.rng_replay.ended()
    if not frame.completed:
        raise GraphError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    return out


class CheckpointFunction(Function):
    """The re-entrant form: one node, whose backward runs the function again, recorded, and a backward through that."""

    @staticmethod
    def forward(ctx: FunctionCtx, run_function: Callable, preserve_rng_state: bool, *args):
        """Run the function without recording; save its tensors."""
        check_backward_validity(args)
        count_tasks()
        ctx.run_function = run_function
        ctx.run_again = _run_again
        ctx.rng_replay = _RngReplay() if preserve_rng_state else None
        ctx.casts = autocast_again()
        ctx.others = [None if isinstance(one, TensorState) else one for one in args]
        ctx.places = [place for place, one in enumerate(args) if isinstance(one, TensorState)]
        ctx.save_for_backward(*(args[place] for place in ctx.places))
        with no_grad():
            out = run_function(*args)
        if ctx.rng_replay is not None:
            ctx.rng_replay.ended()
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, *grads):
        """Run the function again on detached inputs, and differentiate that.

        Raises:
            RuntimeError: only some gradients are requested, or no output requires grad.
        """
        task = current_task()
        if task is not None and task.partial:
            raise GraphError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        outs, detached = _run_again(ctx)
        pairs = [(o, g) for o, g in zip(outs, grads) if isinstance(o, TensorState) and o.requires_grad]
        if not pairs:
            raise GraphError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(one.grad if isinstance(one, TensorState) else None for one in detached)


def _run_again(ctx: FunctionCtx, block: AbstractContextManager | None = None) -> tuple:
    """Run a node's function again, recorded; return its outputs and the leaves that are its arguments.

    Args:
        block: the context to run it in.
    """
    inputs = list(ctx.others)
    for place, tensor in zip(ctx.places, ctx.saved_tensors):
        inputs[place] = tensor
    detached = detach_variable(tuple(inputs))
    draws = nullcontext() if ctx.rng_replay is None else ctx.rng_replay.replay()
    with draws, ctx.casts(), enable_grad(), block or nullcontext():
        found = ctx.run_function(*detached)
    return (found,) if isinstance(found, TensorState) else found, detached


def detach_variable(inputs: tuple) -> tuple:
    """Return arguments with each tensor replaced by a leaf that shares its memory."""
    if not isinstance(inputs, tuple):
        raise GraphError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}; pass a tuple"
        )
    return tuple(
        one.detach().requires_grad_(one.requires_grad) if isinstance(one, TensorState) else one for one in inputs
    )


def check_backward_validity(inputs: Iterable) -> None:
    """Warn if no tensor among a checkpoint's inputs requires grad."""
    if not any(one.requires_grad for one in inputs if isinstance(one, TensorState)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)


def checkpoint_sequential(
    functions: Sequence[Callable] | Sequential,
    segments: int,
    input: object,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
    **kwargs,
):
    """Run functions one after the other, in `segments` parts of which all but the last are checkpointed.

    Args: see `checkpoint`.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            f"version 2.9 we will raise an exception if use_reentrant is not passed. {PASS_USE_REENTRANT}",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    if kwargs:
        raise ValueProblem("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, Sequential) else functions
    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        part = _run_in_order(functions[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _run_in_order(functions[end:])(input)


def _run_in_order(functions: Sequence[Callable]) -> Callable:
    def run(input: object):
        for function in functions:
            input = function(input)
        return input

    return run


globals().update(with_checks(globals(), __all__, __name__))
