"""`lens.Recorder`: gradient flow through a model's layers while it trains, in any loop, on either engine."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import TextIO

from backlight.errors import ArgumentError, InputError, ValueProblem
from backlight.lens.engines import engine_of
from backlight.lens.flow.flow_page import flow_page
from backlight.lens.flow.history import FlowFile, History, read_history
from backlight.lens.flow.live import live
from backlight.training.engine_types import AnyModule, AnyOptimizer, AnyTensor
from backlight.training.step_meter import StepMeter, StepRecorder, check_count, check_existing, described


class Recorder(StepRecorder):
    """Record each layer's gradients, updates, dead units and first NaN or inf, in your own training loop.

        recorder = lens.Recorder(model, optimizer)
        for inputs, labels in loader:
            …
            optimizer.step()
            recorder.step(loss)
        recorder.html("flow.html")

    Gradients are read at the start of `optimizer.step()`, so they are the ones that it uses, clipped and unscaled. If
    `recorder.step` is never called, each `optimizer.step()` counts as a step, without a loss. `close()`, or leaving a
    `with` block, removes the hooks.

    Cost: a pass over gradients and weights per recorded step, and one copy of the trained weights during
    `optimizer.step()` (none with `updates=False`); steps that are not recorded are only checked for NaN and inf.

    Args:
        model: a module of backlight or of PyTorch.
        optimizer: its optimizer, or a list of several; None leaves updates and learning rates out.
        file: a file to write each recorded step to (NOTE [A flow file] in lens/flow/history.py).
        existing: what to do if the file exists: "refuse", "resume" or "replace" it.
        from_step: with "resume", the step to resume from, such as that of your checkpoint; later ones are dropped.
        every: record one in this many steps; the first step and the one with the first NaN or inf are always recorded.
        keep: the maximum number of points in memory; beyond it, every second one is dropped.
        updates: whether to measure what steps change.
        activations: whether to read the outputs of modules: for dead units, and where NaN or inf first appears.
        window: the number of recorded steps over which a unit must be 0 to count as dead.
        title: the page's title.

    Raises:
        InputError: the file already holds a record, or is not a flow file.
        ValueError: the optimizer has no trained parameter of the model.
    """

    def __init__(
        self,
        model: AnyModule,
        optimizer: AnyOptimizer | Sequence[AnyOptimizer] | None = None,
        *,
        file: Path | str | None = None,
        existing: str = "refuse",
        from_step: int | None = None,
        every: int = 1,
        keep: int = 1000,
        updates: bool = True,
        activations: bool = True,
        window: int = 100,
        title: str | None = None,
    ):
        super().__init__(every)
        check_count("keep", keep, 2)
        check_count("window", window)
        several = isinstance(optimizer, Sequence)
        self.optimizers = list(optimizer) if several else [] if optimizer is None else [optimizer]
        _check_parts(model, self.optimizers)
        self._listeners: list[Callable[[dict], None]] = []
        self._rates: list[float] | None = None
        self.history = History(self._about(model, title), keep)
        self._file = None if file is None else FlowFile(file)
        if self._file is not None:
            self._open(existing, from_step)
        self._began = time.perf_counter()
        self._meter = StepMeter(
            model, self.optimizers, updates=updates, activations=activations, window=window, begins=self._begins
        )
        self._meter.found = self.history.found
        self._expect_step()

    # --- what a loop calls -----------------------------------------------------------------------------------------

    def step(self, loss: AnyTensor | float | None = None, **metrics) -> dict | None:
        """Record one step; call it after `optimizer.step()`.

        Args:
            loss: a tensor of one element or a number.
            metrics: numbers, or tensors of one element.

        Returns:
            What was recorded, if this step was: "loss", "lr", "gradient" and, by layer, "gradient_norms",
            "gradient_ratios", "update_norms", "update_ratios", "zero_gradients" and "dead_units".
        """
        self.steps += 1
        is_read = self._is_due(self.steps) or self._meter.found is None
        number = _number(loss, "loss") if is_read else None
        record, measured = None, self._measured(number)
        if measured is not None:
            record = {
                "step": self.steps,
                "seconds": self._seconds(),
                "loss": number,
                "lr": self._rates if self._rates is not None else self._current_rates(),
                "metrics": {name: _number(value, name) for name, value in metrics.items()},
                **measured,
            }
            self.history.append(record)
            if self._file is not None:
                self._file.append(record)
            for listener in self._listeners:
                listener(record)
        self._rates = None
        self._expect_step()
        return record

    @property
    def found(self) -> dict | None:
        """The first value that was not finite: "step", "what", "layer", "kind", "why"."""
        return self.history.found

    @property
    def last(self) -> dict | None:
        """The last recorded step."""
        self._flush()
        return self.history.last

    def live(self, out: TextIO | None = None) -> AbstractContextManager[None]:
        """Return a context manager that shows the run in the terminal, or prints a line from time to time."""
        return live(self.history, self._listeners, sys.stderr if out is None else out)

    def html(self, path: Path | str | None = None) -> str:
        """Return the page as HTML, and write it to a file if a path is given."""
        self._flush()
        page = flow_page(self.history)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        style = "width:100%;height:60em;border:1px solid #8884;border-radius:8px"
        return f'<iframe style="{style}" sandbox="allow-scripts" srcdoc="{escape(self.html())}"></iframe>'

    def __repr__(self) -> str:
        return f"Recorder({self.history.about['model'].partition('(')[0]}, {self.steps} steps)"

    def close(self) -> None:
        """Stop recording: remove the hooks from the model and the optimizer."""
        self._flush()
        self._meter.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # --- steps -----------------------------------------------------------------------------------------------------

    def _begins(self, again: bool) -> None:
        """An optimizer begins a step: if it is its second, the loop does not call `step`."""
        if again:
            self.step()
        self._rates = self._current_rates()

    def _flush(self) -> None:
        if self._meter.stepped:
            self.step()

    def _current_rates(self) -> list[float]:
        groups = (group for optimizer in self.optimizers for group in optimizer.param_groups)
        return [_number(group["lr"], "lr") for group in groups if "lr" in group]

    # --- files -----------------------------------------------------------------------------------------------------

    def _about(self, model: AnyModule, title: str | None) -> dict:
        return {
            "lens": "flow",
            "format": 1,
            "engine": engine_of(model).name,
            "title": title or type(model).__name__,
            **described(model),
            "layers": {name or "model": type(module).__name__ for name, module in model.named_modules()},
            "optimizers": [repr(optimizer) for optimizer in self.optimizers],
        }

    def _open(self, existing: str, from_step: int | None) -> None:
        """Create the file, or resume the existing one."""
        check_existing(existing)
        there = self._file.path.exists()
        if there and existing == "refuse":
            raise InputError(
                f'{self._file.path} already exists: pass existing="resume" to resume it, existing="replace" '
                "to start over, or another file"
            )
        if not there or existing == "replace":
            self._file.begin(self.history.about)
            return
        self.history = read_history(self._file.path, keep=self.history.keep, until=from_step)
        last = self.history.last
        self.steps, self._before = (last["step"], last["seconds"]) if last else (0, 0.0)
        self._file.go_back_to(self.steps)
        self.steps = self.steps if from_step is None else from_step


def _check_parts(model: AnyModule, optimizers: list) -> None:
    if not hasattr(model, "named_parameters"):
        raise ArgumentError(f"model must be a module of backlight or of PyTorch, got {type(model).__name__}")
    trained = {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    if not trained:
        raise ValueProblem("model must have parameters that require grad, got none: nothing of it is trained")
    for optimizer in optimizers:
        if not hasattr(optimizer, "register_step_pre_hook"):
            raise ArgumentError(f"optimizer must be an optimizer of backlight or of PyTorch, got {optimizer!r}")
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if not held & trained:
            raise ValueProblem(
                "optimizer must hold parameters of the model that require grad, got none of them: make it from "
                "model.parameters(), after the model is complete"
            )


def _number(value: AnyTensor | float | None, name: str) -> float | None:
    """Return a number, or a tensor of one element, as a Python number."""
    if value is None:
        return None
    if hasattr(value, "item"):
        if getattr(value, "numel", lambda: 1)() != 1:
            raise ValueProblem(f"{name} must be one number, got a tensor of shape {tuple(value.shape)}: call mean()")
        value = value.item()
    return float(value)
