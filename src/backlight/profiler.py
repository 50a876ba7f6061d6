"""PyTorch's `torch.profiler`: a profile of a loop that measures some of its steps, chosen by a schedule."""

import warnings
from collections.abc import Callable, Iterable
from enum import Enum

from backlight.autograd.profiler import profile as measure
from backlight.autograd.profiler import record_function
from backlight.dispatch.profile_events import EventList
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import Block

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities"]


class ProfilerActivity(Enum):
    """What may be measured: here the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What to do in a step, as returned by a schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be measured."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: after `skip_first` steps, cycles of `wait`, `warmup` and `active` steps.

    Args:
        wait: steps that are not measured.
        warmup: steps that are not measured either: an op's first call makes its code, which takes its time.
        active: steps that are measured; at the last one the profile is handed over.
        repeat: how many cycles; 0 for all that come.
        skip_first: steps before the first cycle.
        skip_first_wait: other than 0 leaves out the wait of the first cycle.

    Raises:
        ValueError: a number is negative, or nothing is ever measured.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueProblem(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", UserWarning, stacklevel=2)
    first = skip_first - wait if skip_first_wait else skip_first

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        cycle, place = divmod(step - first, wait + warmup + active)
        if place < wait or (repeat and cycle >= repeat):
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_MEASURED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(Block):  # noqa: N801 - PyTorch's name
    """Measure what this thread computes inside a `with` block; `step()` marks the end of one step of a loop.

    Args:
        activities: what to measure; all but the CPU is left out, with a warning.
        schedule: says for the number of a step what is done in it; all are measured by default.
        on_trace_ready: called with this object when a cycle of the schedule, or the block, ends.
        record_shapes: keep the shapes of the tensors that ops were called with.
        profile_memory: PyTorch's count of memory; not there.
        with_stack: keep the lines of the program that each event comes from.
        with_flops: PyTorch's count of operations; not there.
        with_modules: for TorchScript in PyTorch; says nothing here.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[["profile"], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ):
        self._options = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        measure(**self._options)  # raises now for unknown options
        self.activities = _present(activities)
        self.schedule = schedule or _record_always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.profiler: measure | None = None
        self._marks_steps = schedule is not None
        self._running = False
        self._measuring: measure | None = None  # the profiler, while it is entered
        self._step: record_function | None = None
        self.current_action = self.schedule(0)

    def _block_state(self) -> None:
        return None

    def _block_change(self, state: object) -> "profile":
        self.start()
        return self

    def _block_restore(self, state: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin: what `with` does."""
        if self._running:
            raise GraphError("this profile runs already: call stop() before start()")
        if self.current_action in _MEASURED:
            self._begin()
        self._begin_step()
        self._running = True

    def stop(self) -> None:
        """End: what `with` does at its end."""
        self._end_step()
        self._end()
        running, self._running = self._running, False
        if running and self.current_action in _MEASURED:
            self._call_trace_handler()

    def step(self) -> None:
        """Mark the end of one step of the loop."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        finished = before is ProfilerAction.RECORD_AND_SAVE
        if before in _MEASURED and (finished or self.current_action not in _MEASURED):
            self._end()
            if finished:
                self._call_trace_handler()
        if self.current_action in _MEASURED and (finished or before not in _MEASURED):
            self._begin()
        self._begin_step()

    def _begin(self) -> None:
        self.profiler = self._measuring = measure(**self._options)
        self._measuring.__enter__()

    def _end(self) -> None:
        ended, self._measuring = self._measuring, None
        if ended is not None:
            ended.__exit__(None, None, None)

    def _call_trace_handler(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self._marks_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        ended, self._step = self._step, None
        if ended is not None:
            ended.__exit__(None, None, None)

    def events(self) -> EventList:
        """Return all events of the last cycle that was measured, in the order in which they began."""
        found = None if self.profiler is None else self.profiler.function_events
        if found is None:
            raise GraphError("Profiler didn't finish running; read it after its block, or in on_trace_ready")
        return found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Group them by name: see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Write them as a trace for a browser's tracing page."""
        self.events().export_chrome_trace(path)


def _present(activities: Iterable[ProfilerActivity] | None) -> set[ProfilerActivity]:
    """Return the activities that are wanted and supported."""
    wanted = supported_activities() if activities is None else set(activities)
    for one in wanted:
        if not isinstance(one, ProfilerActivity):
            raise ArgumentError(f"activities must be of ProfilerActivity, got {one!r}")
    for one in sorted(wanted - supported_activities(), key=lambda one: one.value):
        warnings.warn(f"{one.name} is not available, disabling {one.name} profiling", UserWarning, stacklevel=3)
    if ProfilerActivity.CPU not in wanted:
        raise ValueProblem("activities must contain ProfilerActivity.CPU: there is nothing else to measure here")
    return wanted & supported_activities()
