"""PyTorch's selective activation checkpointing: keep the results of some ops, and recompute the rest.

NOTE [Selective recomputation]
In the forward an interpreter runs each op by a variant of its code that notes the result of the op's forward, and calls
the policy to decide whether to keep it. In the recomputation the variant uses the kept result, and the rest of the code
runs as usual: nodes are recorded and save their inputs, so tensors are saved in the same order, but the values are not
computed again. Views cost nothing and are always recomputed.
"""

import enum
from collections import defaultdict
from collections.abc import Callable
from functools import cache

from backlight.codegen.declaration import Op
from backlight.codegen.generate import generate_noting
from backlight.dispatch.dispatcher import hold_interpreters, release_interpreters
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, interpret, local
from backlight.engine.tensor_state import TensorState, storage_of
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.ops.aten import OpOverload, OpOverloadPacket, overload_of

MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
_CONSUMED = object()


class CheckpointPolicy(enum.Enum):
    """Whether an op's result is kept (`SAVE`) or recomputed in backward; no result is moved to other memory here."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """The first argument of a policy: `op_output` is the result of the op; `is_recompute` is always False."""

    def __init__(self, *, is_recompute: bool, op_output: object = None):
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable | list, allow_cache_entry_mutation: bool = False
) -> tuple:
    """Return the two contexts for `checkpoint(context_fn=…)`: ops selected by a policy are not recomputed.

    Args:
        policy_fn_or_list: called in the forward with (context, op, *args, **kwargs), and returns a `CheckpointPolicy`,
            or whether to save; or a list of ops to save. Ops are named as in PyTorch:
            `backlight.ops.aten.mm.default`.
        allow_cache_entry_mutation: do not check whether kept results were written to since.

    Raises:
        ValueError: something in the list is no op.
        TypeError: it is neither a function nor a list.
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise ArgumentError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict = defaultdict(dict)
    return _CachingInterpreter(kept, policy), _CachedInterpreter(kept, allow_cache_entry_mutation)


def _policy_of(ops: list) -> Callable:
    for one in ops:
        if not isinstance(one, OpOverload):
            more = (
                "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                if isinstance(one, OpOverloadPacket)
                else "Ops are named as in PyTorch: torch.ops.aten.mm.default"
            )
            raise ValueProblem(
                f"Expected op in `op_list` to be an OpOverload but got: {one} of type {type(one)}. {more}"
            )

    def save_these(context: object, op: Op, *args, **kwargs) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in ops else CheckpointPolicy.PREFER_RECOMPUTE

    return save_these


class _Note(ThreadState):
    """The result that the forward of the current op must return, and the result that it returned."""

    given = None
    found = None


note = _Note()


class _Kept:
    """The result of an op's forward, and its versions at that time."""

    def __init__(self, found: object, outs: object):
        self.found = found
        self.storages = [storage_of(one) for one in outs]
        self.versions = [one.version for one in self.storages]

    def taken(self, may_be_written: bool):
        """Return the result.

        Raises:
            RuntimeError: it was written to.
        """
        if not may_be_written and self.versions != [one.version for one in self.storages]:
            raise GraphError("Tensor cached during selective activation checkpoint has been mutated")
        return self.found


class _SelectiveInterpreter(Block, Interpreter):
    """One of the two contexts."""

    def __init__(self, kept: dict):
        self.kept = kept
        self.counts: dict = defaultdict(int)

    def _block_state(self):
        return object()

    def _block_change(self, token: object):
        self.counts.clear()
        hold_interpreters(token)
        local.interpreters.append(self)
        return self

    def _block_restore(self, token: object) -> None:
        local.interpreters[:] = [one for one in local.interpreters if one is not self]
        release_interpreters(token)

    def next_place(self, op: Op) -> tuple:
        """Return the list of an op's kept results, and the number of this call."""
        place = self.counts[op.name]
        self.counts[op.name] += 1
        return self.kept[op.name], place


class _CachingInterpreter(_SelectiveInterpreter):
    """The context of the forward."""

    def __init__(self, kept: dict, policy: Callable):
        super().__init__(kept)
        self.policy = policy

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Run the op, and keep its result if the policy says so."""
        if op.view:
            return UNHANDLED
        out = _run(op, args, kwargs, None)
        if out is NotImplemented:
            return out
        found, note.found = note.found, None
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        policy = self.policy(context, overload_of(op), *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        outs = [one for one in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(one, TensorState)]
        results, place = self.next_place(op)
        results[place] = _Kept(found, outs) if policy in KEPT and found is not None else None
        return out


class _CachedInterpreter(_SelectiveInterpreter):
    """The context of the recomputation."""

    def __init__(self, kept: dict, may_be_written: bool):
        super().__init__(kept)
        self.may_be_written = may_be_written

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Return the kept result of the op.

        Raises:
            RuntimeError: the op did not run in the forward, or what it gave was taken before, or written to.
        """
        if op.view:
            return UNHANDLED
        results, place = self.next_place(op)
        if place not in results:
            raise GraphError(
                f"{overload_of(op)} invocation index {place} encountered during backward but not found in storage. "
                f"{MISMATCH}"
                if results
                else f"{overload_of(op)} encountered during backward but not found in storage. {MISMATCH}"
            )
        entry = results[place]
        if entry is _CONSUMED:
            raise GraphError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is None:
            return UNHANDLED
        results[place] = _CONSUMED
        return _run(op, args, kwargs, entry.taken(self.may_be_written))


def _run(op: Op, args: tuple, kwargs: dict, given: object):
    """Run the noting variant of an op below the active interpreters; its forward returns `given`, if any."""
    noting = _noting(op)

    def run(*args, **kwargs):
        out = interpret(op, run, args, kwargs)
        if out is not UNHANDLED:
            return out
        note.given = given
        try:
            return noting(*args, **kwargs)
        finally:
            note.given = None

    return run(*args, **kwargs)


@cache
def _noting(op: Op):
    """Return a variant of an op's function whose forward reads its result from `note`, or stores it there."""

    def forward(*args, **kwargs):
        note.found = op.forward(*args, **kwargs) if note.given is None else note.given
        return note.found

    return generate_noting(op, forward)
