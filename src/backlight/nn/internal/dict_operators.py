"""The operators of dicts that `nn.ParameterDict` has."""

from collections.abc import Iterable


class DictOperators:
    """`|`, `|=` and `fromkeys` for a class with `copy` and `update`."""

    @classmethod
    def fromkeys(cls, keys: Iterable[str], default: object = None):
        """Return one with this value for every name."""
        made = cls()
        for key in keys:
            made[key] = default
        return made

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
