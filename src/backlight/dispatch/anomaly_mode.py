"""Anomaly mode: its settings and its switches.

NOTE [Anomalies]
While the mode is on, in all threads as in PyTorch, each node's gradients are checked when it has run, and its saved
tensors are dropped only after that: the compiled pass does so itself. With `forward=True` what ops return is checked,
too: NOTE [Dispatch] in dispatch/dispatcher.py. While it is off all this costs nothing. A check is one pass over the
numbers (`nonfinite_kinds`); dispatch/anomaly_report.py explains what it finds. Views are not checked, since their
numbers were.
"""

import warnings
from collections.abc import Callable
from types import CodeType

from backlight.kernels.reduction.summaries import INFINITE, NAN
from backlight.kernels.state_blocks import Block

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


class _Anomaly:
    """What is checked, in all threads, as in PyTorch.

    Attributes:
        listener: is called with `wanted_of_ops` when that changes; dispatch/dispatcher.py puts it here.
        backward: the code of the function that runs a backward (engine/run_backward.py): inside it gradients are
            checked, not the results of ops.
    """

    listener: Callable[[int], None]
    backward: CodeType

    enabled = False
    check_nan = True
    check_inf = False
    forward = False
    applied = 0  # the listener's last argument; None while it is called
    wanted = None  # of gradients: None while the mode is off, else NAN, INFINITE, both or 0

    def settings(self) -> tuple[bool, bool, bool, bool]:
        """Return the four switches."""
        return self.enabled, self.check_nan, self.check_inf, self.forward

    def set(self, enabled: bool, check_nan: bool, check_inf: bool, forward: bool) -> None:
        """Switch, and update the check of ops."""
        # all are converted first: one that is neither true nor false changes nothing
        enabled, check_nan, check_inf, forward = map(bool, (enabled, check_nan, check_inf, forward))
        self.enabled, self.check_nan, self.check_inf, self.forward = enabled, check_nan, check_inf, forward
        self.wanted = (NAN * check_nan + INFINITE * check_inf) if enabled else None
        wanted = self.wanted_of_ops
        if self.applied != wanted:
            self.applied = None
            self.listener(wanted)
            self.applied = wanted

    @property
    def wanted_of_ops(self) -> int:
        """What the results of ops are checked for: NAN, INFINITE, both or 0."""
        return self.wanted or 0 if self.forward else 0


anomaly = _Anomaly()


class set_detect_anomaly(Block):  # noqa: N801 - PyTorch's name
    """Switch the search for NaN on or off: at once when called, and back at the end when used in `with`.

    The first two are PyTorch's; without the others nothing is stopped that PyTorch does not stop.

    Args:
        mode: whether to look at all.
        check_nan: look for NaN in gradients; False leaves only the forward lines in the exceptions of a backward.
        check_inf: look for infinities, too. Loss scaling lets gradients become infinite on purpose.
        forward: look at what each op of the forward returns, too. A NaN stops the first op that returns one, an
            infinity the op that makes one of finite numbers; not what only places a number that the program gives it,
            as `masked_fill(mask, -inf)` does.
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False, forward: bool = False):
        self.previous = anomaly.settings()
        try:
            anomaly.set(bool(mode), bool(check_nan), bool(check_inf), bool(forward))
        except BaseException:
            anomaly.set(*self.previous)
            raise

    def _block_state(self):
        return self.previous

    def _block_change(self, state):
        pass

    def _block_restore(self, state):
        anomaly.set(*state)


class detect_anomaly(Block):  # noqa: N801 - PyTorch's name
    """Look for NaN in gradients inside a `with` block; the error says what made it, where and why.

    Args: see `set_detect_anomaly`.
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False, forward: bool = False):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )
        self.wanted = True, bool(check_nan), bool(check_inf), bool(forward)

    def _block_state(self):
        return anomaly.settings()

    def _block_change(self, state):
        anomaly.set(*self.wanted)

    def _block_restore(self, state):
        anomaly.set(*state)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off for good; `autograd.set_detect_anomaly` does the same, and can be a block."""
    anomaly.set(mode, check_nan, False, False)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on."""
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode looks for NaN."""
    return anomaly.check_nan
