"""`GradScaler`: scale losses before backward, so that small float16 gradients do not underflow, and unscale after."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from backlight.dtypes import float16, float32, int32
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import GraphError, ValueProblem
from backlight.optim.optimizer import Optimizer
from backlight.system.user_warnings import warn_outside
from backlight.tensor.creation import tensor
from backlight.tensor.factories import full
from backlight.tensor.tensor import Tensor

__all__ = ["GradScaler"]

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"
NO_SCALE = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class GradScaler:
    """Scales losses, unscales gradients before a step, skips steps with infinite ones, and adapts the scale.

    Args:
        device: "cpu"; for "cuda" scaling is off, with a warning.
        growth_interval: after so many good steps the scale grows.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda":
            warn_outside("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale = self._growth_tracker = None
        self._stages: dict[int, str] = defaultdict(lambda: READY)
        self._found_inf: dict[int, bool] = {}

    def scale(self, outputs: Tensor | Iterable):
        """Return a tensor, or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, TensorState):
            if self._scale is None:
                self._scale = full((), self._init_scale, dtype=float32)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=int32)
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueProblem("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide an optimizer's gradients by the scale, once before its step; for clipping them."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        stage = self._stages[id(optimizer)]
        if stage == UNSCALED:
            raise GraphError("unscale_() has already been called on this optimizer since the last update().")
        if stage == STEPPED:
            raise GraphError("unscale_() is being called after step().")
        self._found_inf[id(optimizer)] = self._divide(optimizer)
        self._stages[id(optimizer)] = UNSCALED

    def _divide(self, optimizer: Optimizer) -> bool:
        """Multiply gradients with the inverse of the scale; tell whether one is infinite or NaN."""
        inverse, found = np.float32(1 / float(self._scale.item())), False
        for parameter in (one for group in optimizer.param_groups for one in group["params"]):
            grad = parameter.grad
            if grad is None:
                continue
            if grad.dtype is float16:
                raise ValueProblem("Attempting to unscale FP16 gradients.")
            found |= not grad.detach().isfinite().all().item()
            grad.detach().mul_(tensor(inverse))
        return found

    def step(self, optimizer: Optimizer, *args, **kwargs):
        """Unscale the gradients if that was not done, and let the optimizer step unless one is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise GraphError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        if self._stages[id(optimizer)] == STEPPED:
            raise GraphError("step() has already been called since the last update().")
        if self._stages[id(optimizer)] == READY:
            self.unscale_(optimizer)
        out = None if self._found_inf[id(optimizer)] else optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = STEPPED
        return out

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale if a gradient was infinite, let it grow after many good steps; or set it."""
        if not self._enabled:
            return
        self._check_scale("update")
        if new_scale is not None:
            self._scale.fill_(new_scale if isinstance(new_scale, float) else new_scale.item())
        elif not self._found_inf:
            raise AssertionError("No inf checks were recorded prior to update.")
        else:
            self._adapt(any(self._found_inf.values()))
        self._stages.clear()
        self._found_inf.clear()

    def _adapt(self, found_inf: bool) -> None:
        good = 0 if found_inf else int(self._growth_tracker.item()) + 1
        factor = self._backoff_factor if found_inf else self._growth_factor if good == self._growth_interval else 1.0
        scaled = np.float32(np.float32(self._scale.item()) * np.float32(factor))
        if np.isfinite(scaled):
            writable(self._scale)[...] = scaled
        self._growth_tracker.fill_(0 if good == self._growth_interval else good)

    def _check_scale(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {NO_SCALE}")

    def get_scale(self) -> float:
        """Return the scale; 1 if scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return by what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return by what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Tell whether losses are scaled at all."""
        return self._enabled

    def state_dict(self) -> dict:
        """Return what `load_state_dict` takes up; empty if scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker if self._scale is None else int(self._growth_tracker.item()),
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a state.

        Raises:
            RuntimeError: it is empty, that of a scaler that was off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise GraphError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
            self._growth_tracker.fill_(state_dict["_growth_tracker"])
