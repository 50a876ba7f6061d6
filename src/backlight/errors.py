"""The exception tree. Each error is also the built-in kind that PyTorch raises for the same mistake."""

from collections.abc import Collection, Mapping

from backlight.system.lazy_import import function_later

close_matches = function_later("difflib", "get_close_matches")


def install_hint(extra: str) -> str:
    """Return how to install the libraries of an extra of backlight.

    >>> install_hint("explain")
    'pip install "backlight[explain]", or in a clone: pip install ".[explain]"'
    """
    return f'pip install "backlight[{extra}]", or in a clone: pip install ".[{extra}]"'


class BacklightError(Exception):
    """Any error that backlight raises on purpose."""


class GraphError(BacklightError, RuntimeError):
    """The graph is in a state that does not allow the call: freed, modified, cut or missing."""


class AnomalyError(GraphError):
    """Anomaly mode stopped at a NaN or an infinity.

    Attributes:
        phase: "backward" or "forward".
        kind: "nan" or "inf".
        op: the op's name, `sqrt`.
        node: the node that returned it; of a forward, the one that the op was recorded as, or None.
        number: which of its outputs holds it.
        line: file, line, function and text of the line of the forward that called the op.
        path: backward: the nodes from the loss to this one. Forward: from the op back to where its input came from.
        values: what is known of the numbers: shapes, extremes, how many are NaN or infinite and where the first is.
        made_here: whether it was made of finite numbers here.
        cause: the likely cause.
        cure: what to try.
        seen: what was special about the numbers, or "".
    """

    def __init__(self, text: str, facts: Mapping[str, object]):
        super().__init__(text)
        self.__dict__.update(facts)


class ShapeError(BacklightError, RuntimeError):
    """Shapes, sizes or dtypes of the arguments do not fit together."""


class StorageError(BacklightError, RuntimeError, MemoryError):
    """An array needs more bytes than can be counted, or than there are."""


class LinAlgError(BacklightError, RuntimeError):
    """A matrix is singular, not positive-definite, or of a kind that an algorithm does not converge on."""


class UnsupportedError(BacklightError, NotImplementedError):
    """An op does not exist for the dtype of its argument, or has no derivative."""


class DimError(BacklightError, IndexError):
    """A dim or an index lies outside the tensor."""


class DeviceAbsent(GraphError, AssertionError):
    """A GPU is requested: PyTorch without CUDA raises an AssertionError, backlight a RuntimeError for other devices."""


class ArgumentError(BacklightError, TypeError):
    """An argument is of the wrong kind."""


class ValueProblem(BacklightError, ValueError):
    """An argument is of the right kind and has a value that cannot be used."""


class NumberOverflow(BacklightError, OverflowError):
    """A Python int is larger than any number that PyTorch takes."""


class ExportError(BacklightError, BufferError):
    """A tensor's memory cannot be handed to another library, or taken from one."""


class WorkerError(BacklightError, RuntimeError):
    """A process that loads data died, took too long, or failed with an exception that cannot be made again."""


class DistError(BacklightError, RuntimeError):
    """A process group failed."""


class DistBackendError(DistError):
    """Processes did not do the same, one of them ended, or they waited for too long."""


class DistStoreError(DistError):
    """The processes of a job did not find each other."""


class DistNetworkError(DistError):
    """The place where processes meet cannot be reached."""


class InputError(BacklightError, ValueError):
    """What a person gave the command line (a file, a folder, a query) cannot be used."""


class InputTypeError(InputError, ArgumentError):
    """What was given where a text, or a list of texts, is meant is something else."""


class MissingMethodError(BacklightError, NotImplementedError):
    """A class lacks a method that its user has to write."""


def unknown(what: str, got: str, names: Collection[str]) -> InputError:
    """Return the error for a name that is none of `names`, with the nearest one first."""
    near = close_matches(got.lower(), names, n=1)
    hint = f": did you mean {near[0]}?" if near else ""
    return InputError(f"{what} must be one of {', '.join(names)}, got {got}{hint}")
