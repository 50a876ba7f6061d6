"""Modules that hold parameters: `ParameterList`, `ParameterDict`."""

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, DimError, ValueProblem
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: object):
    """Return a tensor as a Parameter; other values as they are, which these containers may hold too."""
    return Parameter(value) if isinstance(value, TensorState) and not isinstance(value, Parameter) else value


def _pair(place: int, pair: object) -> tuple:
    """Return an element of what a ParameterDict is updated with as a key and a value."""
    start = f"ParameterDict update sequence element #{place}"
    if not isinstance(pair, Iterable):
        raise ArgumentError(f"{start} should be Iterable; is{type(pair).__name__}")
    found = tuple(pair)
    if len(found) != 2:
        raise ValueProblem(f"{start} has length {len(found)}; 2 is required")
    return found


def _description(value: object, elements: Callable) -> str:
    """Return what is printed for one value; `elements` names the type of its elements."""
    if not isinstance(value, TensorState):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{elements(value)} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """Parameters in a list; tensors put into it become parameters."""

    def __init__(self, values: Iterable | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        number = operator.index(index)
        if not -self._size <= number < self._size:
            raise DimError(f"index {number} is out of range; there are {self._size} elements")
        return str(number % self._size)

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)([self[number] for number in range(self._size)[index]])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: object) -> None:
        setattr(self, self._key(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator:
        return iter([self[number] for number in range(self._size)])

    def __iadd__(self, values: Iterable):
        return self.extend(values)

    def append(self, value: object):
        """Add a value at the end, and return self."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable):
        """Add values at the end, and return self.

        Raises:
            TypeError: `values` is not iterable, or one tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, TensorState):
            raise ArgumentError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({number}): {_description(value, attrgetter('dtype'))}" for number, value in enumerate(self)
        )


class ParameterDict(Module):
    """Parameters by name; tensors put into it become parameters."""

    def __init__(self, parameters: Mapping | Iterable | None = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: object) -> None:
        if not isinstance(key, str):
            raise ArgumentError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'); use str({key!r})"
            )
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self):
        """Return the names."""
        return self._keys.keys()

    def values(self) -> Iterator:
        """Return the values."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterator[tuple]:
        """Return (name, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: object | None = None):
        """Return the value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: object | None = None):
        """Return the value of a name, which is given `default` first if it is new."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str):
        """Take a value out and return it."""
        taken = self[key]
        del self[key]
        return taken

    def popitem(self) -> tuple:
        """Take the last (name, value) pair out and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> "ParameterDict":
        """Return another ParameterDict with the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def update(self, parameters: Mapping | Iterable) -> None:
        """Add values from a mapping (a plain dict in the order of its names) or from pairs.

        Raises:
            TypeError: `parameters` is not iterable.
        """
        if not isinstance(parameters, Iterable):
            raise ArgumentError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        else:
            pairs = sorted(parameters.items()) if isinstance(parameters, Mapping) else parameters
        for place, pair in enumerate(pairs):
            key, value = _pair(place, pair)
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_description(value, Tensor.type)}" for key, value in self.items())
