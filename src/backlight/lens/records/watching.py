"""`lens.watch()`: record what a program does. `lens.capture()`: record a graph that is there already."""

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import ClassVar

from backlight.errors import InputError
from backlight.kernels.state_blocks import Block, Several
from backlight.lens.engines import Engine, Guarded, engine_named, engine_of, loaded_engines
from backlight.lens.records.building import Options
from backlight.lens.records.record import Record
from backlight.lens.records.recording import Recording
from backlight.training.engine_types import AnyTensor

VALUES = ("summary", "none", "full", "hash")


class Watch(Block):
    """Records what a program does inside a `with` block or a decorated function; see `watch`."""

    open: ClassVar[list["Watch"]] = []  # those that watch now, in any thread

    def __init__(self, options: Options, engine: str | None, models: tuple, steps: int | None):
        self.options = options
        self.engine = engine
        self.models = models
        self.steps = steps
        self.recordings: list[Recording] = []

    @property
    def records(self) -> list[Record]:
        """The non-empty records, the latest last; inside the block this includes the current one."""
        return [record for one in self.recordings for record in one.records() if record.nodes]

    @property
    def record(self) -> Record:
        """The latest record; it is empty if nothing was computed that requires grad.

        Raises:
            InputError: nothing was watched yet.
        """
        if not self.recordings:
            raise InputError("record must be asked for after watching has begun: use `with lens.watch() as watch:`")
        return (self.records or [self.recordings[0].record])[-1]

    def cut(self) -> None:
        """End the current record; everything after this goes into a new one."""
        for one in self.recordings:
            one.split(sys._getframe(1))

    def _block_state(self) -> Several:
        if self.recordings and self.recordings[0].watches:
            raise InputError("watch must not be entered again while it watches: make another one with lens.watch()")
        return Several()

    def _block_change(self, blocks: Several) -> "Watch":
        engines = loaded_engines() if self.engine is None else [engine_named(self.engine)]
        self.recordings = [Recording(one, self.options, self.models, self.steps) for one in engines]
        for one in self.recordings:
            blocks.enter(one.engine.observe(Guarded(one, one.give_up)))
        Watch.open.append(self)
        return self

    def _block_restore(self, blocks: Several) -> None:
        Watch.open[:] = [one for one in Watch.open if one is not self]
        blocks.leave()
        for one in self.recordings:
            one.end(sys._getframe(1))
            if one.record.problem is not None:
                warnings.warn(f"lens.watch could not go on: {one.record.problem}", stacklevel=2)

    def __call__(self, function: Callable):
        """Decorate a function: each call is watched, and `function.watch` is this watch."""

        @functools.wraps(function)
        def watched(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        watched.watch = self
        return watched


def watch(
    *,
    values: str = "summary",
    small: int = 64,
    limit: int = 20_000,
    models: object = (),
    names: bool = True,
    title: str | None = None,
    engine: str | None = None,
    steps: int | None = None,
) -> Watch:
    """Record what a program does: its graph, each backward pass in order with its gradients, and in-place writes.

        with lens.watch() as watch:
            loss = criterion(model(images), labels)
            loss.backward()
        watch.record.save("step.json")

    Also a decorator: `@lens.watch()`, with the record in `function.watch.record`.

    Args:
        values: what to keep of each tensor: "summary" (min, mean, max, norm, and counts of NaN, inf and 0); "none"
            (only shapes); "full" (all values); "hash" (a summary and a fingerprint, for `lens.diff` to compare values
            op by op, and parameters after an optimizer's step).
        small: tensors of up to this many elements are kept in full.
        limit: the maximum number of nodes to record; the record counts those `left_out`.
        models: modules to name parameters by. Modules that run, or that a variable holds, are found anyway.
        names: whether to name tensors after the caller's variables.
        title: the record's title.
        engine: "torch" or "backlight"; by default both are watched, PyTorch if it has been imported.
        steps: for a loop: start a new record after each backward, and keep the latest `steps` of them in
            `Watch.records`. By default everything goes into one record.
    """
    if steps is not None and steps < 1:
        raise InputError(f"steps must be at least 1, got {steps}: how many records to keep")
    return Watch(_options(values, small, limit, names, title), engine, _modules(models), steps)


def capture(
    output: AnyTensor | Sequence[AnyTensor],
    *,
    values: str = "summary",
    small: int = 64,
    limit: int = 20_000,
    models: object = (),
    names: bool = True,
    title: str | None = None,
) -> Record:
    """Record the existing graph of one or more tensors: its nodes, their saved tensors, the leaves' `.grad`.

    Results of ops are known only if a node saved them, and backward passes are not recorded: use `watch` for those.

    Args:
        output: a tensor that requires grad, or a list of them. Others as in `watch`.

    Raises:
        InputError: a tensor has no graph.
    """
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    if not outputs:
        raise InputError("output must be a tensor or a list of tensors, got an empty list: pass the loss")
    engine = engine_of(outputs[0])
    recording = Recording(engine, _options(values, small, limit, names, title), _modules(models))
    recording.capture([_edge_of(engine, one) for one in outputs], outputs)
    recording.close(sys._getframe(1))
    return recording.fill()


def _edge_of(engine: Engine, tensor: AnyTensor) -> tuple:
    if not engine.is_tensor(tensor):
        raise InputError(f"output must be a tensor, got {type(tensor).__name__}: pass the loss, not its value")
    edge = engine.node_of(tensor)
    if edge is None:
        raise InputError(
            f"output must require grad, got a tensor of shape {tuple(tensor.shape)} that does not and has no graph: "
            "compute it from tensors with requires_grad=True, outside of no_grad()"
        )
    return edge


def _options(values: str, small: int, limit: int, names: bool, title: str | None) -> Options:
    if values not in VALUES:
        raise InputError(f"values must be one of {', '.join(VALUES)}, got {values!r}")
    if limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}: how many nodes to record")
    return Options(values, small, limit, names, title or "")


def _modules(models: object) -> tuple:
    return tuple(models) if isinstance(models, (list, tuple)) else (models,)
