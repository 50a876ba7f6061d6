"""The exception tree. Each error is also the built-in kind that PyTorch raises for the same mistake."""


class BacklightError(Exception):
    """Any error that backlight raises on purpose."""


class GraphError(BacklightError, RuntimeError):
    """The graph is in a state that does not allow the call: freed, modified, cut or missing."""


class ShapeError(BacklightError, RuntimeError):
    """Shapes, sizes or dtypes of the arguments do not fit together."""


class DimError(BacklightError, IndexError):
    """A dim or an index lies outside the tensor."""


class ArgumentError(BacklightError, TypeError):
    """An argument is of the wrong kind."""


class ValueProblem(BacklightError, ValueError):
    """An argument is of the right kind and has a value that cannot be used."""


class WorkerError(BacklightError, RuntimeError):
    """A process that loads data died, took too long, or failed with an exception that cannot be made again."""


class InputError(BacklightError, ValueError):
    """What a person gave the command line (a file, a folder, a query) cannot be used."""


class MissingMethodError(BacklightError, NotImplementedError):
    """A class lacks a method that its user has to write."""
