"""What containers of parameters have beside their contents: the operators of dicts, and that they are not called."""

from collections.abc import Iterable

from backlight.errors import GraphError


class DictOperators:
    """`|`, `|=` and `fromkeys` for a class with `copy` and `update`."""

    def fromkeys(self, keys: Iterable[str], default: object = None):
        """Return a new one with this value for every name; in PyTorch, too, it takes an instance."""
        return type(self)((key, default) for key in keys)

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self


class NotCalled:
    """Parameters in a container: a module that is not called."""

    def __call__(self, *args, **kwargs):
        raise GraphError(f"{type(self).__name__} should not be called.")
