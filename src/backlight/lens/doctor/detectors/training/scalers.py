"""Gradients of losses that a GradScaler has scaled, and steps that take them for the gradients themselves."""

from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import name_of
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import brief, place_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

TWICE = 2


class Scalers(Detector):
    """Watches GradScalers."""

    def __init__(self, watch):
        super().__init__(watch)
        self.losses: WeakIdDict[Place | None] = WeakIdDict()  # what scale() returned
        self.of_run: Place | None = None  # where the loss of the backward that runs was scaled
        self.scaled: WeakIdDict[Place | None] = WeakIdDict()  # parameters with gradients of a scaled loss
        self.stepping_by: Any = None  # the scaler whose step runs
        self.counts: dict[tuple, int] = {}

    def begin(self) -> None:
        """Watch scale, unscale_ and step."""
        kind = getattr(getattr(self.engine.module, "amp", None), "GradScaler", None)
        if kind is None:
            return
        self.watch.after(kind, "scale", self._scale)
        self.watch.after(kind, "unscale_", self._unscale)
        self.session.patch(kind, "step", self._step)

    def _scale(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if args[0].is_enabled() and self.engine.is_tensor(out):
            self.losses[out] = place_of_frame(frame)

    def _unscale(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        optimizer = args[1] if len(args) > 1 else kwargs.get("optimizer")
        for group in optimizer.param_groups:
            for param in group["params"]:
                self.scaled.pop(param)

    def _step(self, original: Callable) -> Callable:
        @wraps(original)
        def step(scaler: Any, optimizer: Any, *args, **kwargs):
            before, self.stepping_by = self.stepping_by, scaler
            try:
                return original(scaler, optimizer, *args, **kwargs)
            finally:
                self.stepping_by = before

        return step

    def are_scaled(self, params: list) -> bool:
        """Return whether gradients are those of a scaled loss, and were not unscaled."""
        return any(param in self.scaled for param in params)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note whether the loss was scaled."""
        self.of_run = self.losses.get(tensor) if len(self.losses) else None

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note whose gradients are scaled."""
        if self.of_run is not None:
            self.scaled[tensor] = self.of_run

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Forget what was cleared."""
        for param in params if len(self.scaled) else ():
            self.scaled.pop(param)

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Report a step of the optimizer itself with scaled gradients."""
        if self.stepping_by is not None or not self.are_scaled(params) or place is None:
            return
        scaled = next(where for param in params if (where := self.scaled.get(param)) is not None)
        if self._is_certain(("step", place.line)):
            name = name_of(optimizer)
            self.report(
                "step-with-scaled-gradients",
                place,
                f"The loss was multiplied at {brief(scaled)} by a GradScaler; {name}.step() at {brief(place)} used "
                f"its gradients, but nothing had unscaled them.",
                cure=f"call scaler.step({name}) and scaler.update() instead of {name}.step()",
            )

    def _is_certain(self, key: tuple) -> bool:
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key] == TWICE
