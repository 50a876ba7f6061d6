"""Hooks of a recorder on a model or an optimizer: they go when it goes, and a copy of the model has none that work."""

import weakref


class SilentHook:
    """Call a recorder's method, as long as the recorder is there.

    A recorder must not live on because the model it watches does, and a copy of the model (by `copy.deepcopy`, or
    through `torch.save`) must not report to it: what is copied or unpickled is a hook that does nothing.

    Args:
        method: a bound method.
        args: its first arguments.
    """

    def __init__(self, method, *args):
        self._method, self._args = weakref.WeakMethod(method), args

    def __call__(self, *given) -> None:
        """Call the method, if its object is still there."""
        method = self._method()
        if method is not None:
            method(*self._args, *given)

    def __reduce__(self):
        return _Nothing, ()


class _Nothing:
    """A hook that does nothing."""

    def __call__(self, *given) -> None:
        pass
