"""Shared parts of recorders of training loops: measure steps, find the first NaN or inf, keep the time."""

import math
import time
from collections.abc import Callable, Sequence

from backlight.errors import ValueProblem
from backlight.training.engine_types import AnyModule
from backlight.training.gradient_flow import FlowMeter, Forwards, LayerFlow, NonFinite, layers_of, square_of

BY_LAYER = ("gradient_norms", "gradient_ratios", "update_norms", "update_ratios", "zero_gradients", "dead_units")


class StepMeter:
    """Measure the steps of a model's training, by hooks on its modules and its optimizers.

    Args:
        model: the model.
        optimizers: whose steps change its weights; there may be none.
        updates: whether to measure the updates; that takes a copy of the trained weights while the optimizer runs.
        activations: whether to look at the outputs of modules: for dead units, and for NaN and inf.
        window: the number of measured steps after which a unit that was never active counts as dead.
        begins: is called as an optimizer's step begins, with whether that one made a step since the last `take`.
    """

    def __init__(
        self,
        model: AnyModule,
        optimizers: Sequence,
        *,
        updates: bool = True,
        activations: bool = True,
        window: int = 100,
        begins: Callable[[bool], None] | None = None,
    ):
        self.layers = layers_of(model)
        self._flow = FlowMeter(self.layers, optimizers, updates=updates, window=window, begins=begins)
        self._forwards = Forwards(model, square_of, window) if activations else None
        self.found: dict | None = None  # the first value that was not finite

    @property
    def stepped(self) -> bool:
        """Whether an optimizer made a step since the last `take`."""
        return self._flow.stepped

    def begin(self, full: bool) -> None:
        """Measure the next step in full, or only look for values that are not finite until there was one."""
        for part in filter(None, (self._flow, self._forwards)):
            part.full, part.seeking = full, self.found is None

    def take(self, step: int, loss: float | None) -> dict:
        """Return what was measured since the last time.

        Args:
            step: its number.
            loss: its loss, if that is known.

        Returns:
            "gradient", the norm of all, and for each of `BY_LAYER` a dict by layer; where the step brought the first
            value that is not finite, "first_not_finite": "step", "what" ("output", "loss" or "gradient"), "layer",
            "kind" ("NaN" or "inf") and "why", what else is known.
        """
        flow = self._flow.take()
        non_finite, dead = self._forwards.take() if self._forwards is not None else (None, {})
        measured = {
            "gradient": flow.total if any(norm is not None for norm in flow.norms.values()) else None,
            **dict(zip(BY_LAYER, (flow.norms, flow.ratios, flow.update_norms, flow.update_ratios, flow.zeros))),
            "dead_units": flow.dead | dead,
        }
        if self.found is None:
            self.found = _first_of(step, loss, flow, non_finite)
            if self.found is not None:
                measured["first_not_finite"] = self.found
        return measured

    def close(self) -> None:
        """Take the hooks away."""
        parts = filter(None, (self._flow, self._forwards))
        for handle in [handle for part in parts for handle in part.handles]:
            handle.remove()


def _first_of(step: int, loss: float | None, flow: LayerFlow, non_finite: NonFinite | None) -> dict | None:
    """Return the first value of a step that is not finite, if its loss or a gradient is not.

    An output that is not finite and of which neither knows, such as a mask of −inf, was meant.
    """
    layer = flow.first_not_finite
    lost = loss is not None and not math.isfinite(loss)
    if layer is None and not lost:
        return None
    if non_finite is not None:
        return {"step": step, "what": "output", **non_finite._asdict()}
    if lost:
        kind = "NaN" if loss != loss else "inf"
        return {"step": step, "what": "loss", "layer": None, "kind": kind, "why": "all outputs of modules were finite"}
    kind = "NaN" if flow.norms[layer] != flow.norms[layer] else "inf"
    why = "the loss was finite" if loss is not None else ""
    return {"step": step, "what": "gradient", "layer": layer, "kind": kind, "why": why}


def said_of(found: dict) -> str:
    """Return the first value that was not finite in words.

    >>> said_of({"step": 3, "what": "output", "layer": "fc1", "kind": "inf", "why": "its input was finite"})
    'inf first at step 3: in the output of fc1 (its input was finite)'
    """
    where = "in the loss" if found["what"] == "loss" else f"in the {found['what']} of {found['layer']}"
    why = f" ({found['why']})" if found["why"] else ""
    return f"{found['kind']} first at step {found['step']:,}: {where}{why}"


class StepRecorder:
    """What `training.Recorder` and `lens.Recorder` share: which steps are recorded, what is measured, the time.

    Args:
        every: of so many steps one is recorded; the first always is, and that with the first NaN or inf.
    """

    _meter: StepMeter

    def __init__(self, every: int):
        check_count("every", every)
        self.every, self.steps = every, 0
        self._began, self._before = time.perf_counter(), 0.0  # `_before`: the seconds of a run that is taken up

    def _is_due(self, step: int) -> bool:
        return step == 1 or step % self.every == 0

    def _expect_step(self) -> None:
        self._meter.begin(self._is_due(self.steps + 1))

    def _measured(self, loss: float | None) -> dict | None:
        """Return what was measured of the step that has just ended, or None if it is not to be recorded."""
        measured = self._meter.take(self.steps, loss)
        return measured if self._is_due(self.steps) or "first_not_finite" in measured else None

    def _seconds(self) -> float:
        return self._before + time.perf_counter() - self._began


def described(model: AnyModule) -> dict:
    """Return what a record says of its model."""
    return {"model": repr(model), "parameters": sum(parameter.numel() for parameter in model.parameters())}


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise unless an option is a whole number, and large enough.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueProblem(f"{name} must be a whole number, {least} or more, got {value!r}")


def check_existing(existing: str) -> None:
    """Raise unless it is known what to do with a record that is there already.

    Raises:
        ValueError: it is not.
    """
    if existing not in ("refuse", "resume", "replace"):
        raise ValueProblem(f'existing must be "refuse", "resume" or "replace", got {existing!r}')
