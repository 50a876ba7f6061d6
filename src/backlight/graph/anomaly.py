"""Anomaly mode: a NaN in a gradient stops the backward at the node that made it."""

import linecache
import warnings

import numpy as np

from backlight.errors import GraphError


class _Anomaly:
    """What is checked, in all threads, as in PyTorch."""

    enabled = False
    check_nan = True


anomaly = _Anomaly()


def check_gradients(node, grads, graph: bool) -> None:
    """Raise if a node gave a gradient with a NaN in it.

    Raises:
        RuntimeError: it did; the message says which one, and which line of the forward made the node.
    """
    for place, grad in enumerate(grads):
        if grad is not None and np.isnan(grad._data if graph else grad).any():
            raise GraphError(
                f"Function '{node.name()}' returned nan values in its {place}th output.\n  It was made at {node.where}"
            )


def warn_of(node) -> None:
    """Say which line of the forward made the node that failed, as PyTorch does in anomaly mode."""
    filename, number = node.line
    source = linecache.getline(filename, number).strip()
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
        f'  File "{filename}", line {number}, in {node.code.co_name}\n' + (f"    {source}\n" if source else ""),
        UserWarning,
        stacklevel=2,
    )


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Switch the search for NaN on or off: at once when called, and back at the end when used in `with`.

    Args:
        mode: whether to look.
        check_nan: PyTorch can keep forward tracebacks without looking for NaN; here each node knows its line anyway.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.previous = anomaly.enabled, anomaly.check_nan
        anomaly.enabled = bool(mode)
        anomaly.check_nan = bool(check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        anomaly.enabled, anomaly.check_nan = self.previous


class detect_anomaly(set_detect_anomaly):  # noqa: N801 - PyTorch's name
    """Look for NaN in gradients inside a `with` block; the error names the forward line that led to it."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on."""
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode looks for NaN."""
    return anomaly.check_nan
