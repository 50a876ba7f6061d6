"""Modules that hold modules or parameters: `Sequential`, and lists and dicts of both."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, DimError, ValueProblem
from backlight.nn.internal.dict_operators import DictOperators, NotCalled
from backlight.nn.modules.module import Module, indented
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _require_iterable(call: str, values: object, of_what: str = "") -> None:
    if not isinstance(values, Iterable):
        raise ArgumentError(f"{call} should be called with an iterable{of_what}, but got {type(values).__name__}")


class NumberedModules(Module):
    """Base class of `Sequential` and `ModuleList`: numbered children, accessed as in a list."""

    def _key(self, index: int) -> str:
        """Return the name of the child at an index."""
        number, count = operator.index(index), len(self)
        if not -count <= number < count:
            raise DimError(f"index {number} is out of range; there are {count} modules")
        return list(self._modules)[number]

    def _replace_all(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self._modules[str(number)] = module

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        if not isinstance(index, slice):
            self._key(index)
        del modules[index]
        self._replace_all(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module):
        """Add a module at the end, and return self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Add modules at the end, and return self.

        Raises:
            TypeError: `modules` is not iterable.
        """
        _require_iterable(f"{type(self).__name__}.extend", modules)
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Put a module before the one at `index`, and return self.

        Raises:
            IndexError: the index is out of range.
            TypeError: `module` is not a Module.
        """
        if not isinstance(module, Module):
            raise ArgumentError(f"module should be of type: {Module}, got {type(module).__name__}")
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise DimError(f"Index out of range: {index}; there are {len(modules)} modules")
        modules.insert(index, module)
        self._replace_all(modules)
        return self

    def pop(self, index: int | slice):
        """Remove the module (or, with a slice, modules) and return it."""
        taken = self[index]
        del self[index]
        return taken


class Sequential(NumberedModules):
    """Modules that run one after the other, each on the output of the previous one.

    Args:
        args: the modules; or one OrderedDict of modules by name.

    >>> import backlight as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Module | OrderedDict):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def forward(self, input: object):
        """Run the modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other: "Sequential") -> "Sequential":
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: "Sequential"):
        _check_sequential(other)
        return self.extend(other)

    def __mul__(self, times: int) -> "Sequential":
        _check_times(self, times)
        return Sequential(*chain.from_iterable([self] * times))

    __rmul__ = __mul__

    def __imul__(self, times: int):
        _check_times(self, times)
        return self.extend(list(self) * (times - 1))


def _check_sequential(other: object) -> None:
    if not isinstance(other, Sequential):
        raise ValueProblem(f"add operator supports only objects of Sequential class, but {type(other)} is given.")


def _check_times(module: object, times: int) -> None:
    if not isinstance(times, int):
        raise ArgumentError(f"unsupported operand type(s) for *: {type(module)} and {type(times)}")
    if times <= 0:
        raise ValueProblem(f"Non-positive multiplication factor {times} for {type(module)}")


class ModuleList(NumberedModules):
    """Modules in a list, registered (unlike in a plain Python list); it has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __iadd__(self, modules: Iterable[Module]):
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Print equal neighbours once, with their number."""
        runs: list[list] = []  # [first, last, text]
        for number, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = number
            else:
                runs.append([number, number, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(map(indented, lines)) + "\n)"


class ModuleDict(Module):
    """Modules by name, as in a dict; it has no forward."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self):
        """Return the names."""
        return self._modules.keys()

    def values(self):
        """Return the modules."""
        return self._modules.values()

    def items(self):
        """Return (name, module) pairs."""
        return self._modules.items()

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a mapping or from pairs.

        Raises:
            TypeError: `modules` is not iterable.
            ValueError: an element is not a pair.
        """
        _require_iterable("ModuleDict.update", modules, " of key/value pairs")
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for number, pair in enumerate(pairs):
            key, module = _pair("ModuleDict", number, pair, "is ")
            self[key] = module


def _pair(name: str, number: int, pair: object, verb: str) -> tuple:
    """Return an element of what a dict of modules or parameters is updated with as a key and a value."""
    start = f"{name} update sequence element #{number}"
    if not isinstance(pair, Iterable):
        raise ArgumentError(f"{start} should be Iterable; {verb}{type(pair).__name__}")
    found = tuple(pair)
    if len(found) != 2:
        raise ValueProblem(f"{start} has length {len(found)}; 2 is required")
    return found


class Container(Module):
    """Modules by name; PyTorch's predecessor of modules as attributes."""

    def __init__(self, **kwargs: Module):
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


def _as_parameter(value: object):
    """Return a tensor as a Parameter; other values as they are, which these containers may hold too."""
    return Parameter(value) if isinstance(value, TensorState) and not isinstance(value, Parameter) else value


def _description(value: object, elements: Callable) -> str:
    """Return what is printed for one value; `elements` names the type of its elements."""
    if not isinstance(value, TensorState):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{elements(value)} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(NotCalled, Module):
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


class ParameterDict(NotCalled, DictOperators, Module):
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
        return map(self.__getitem__, self._keys)

    def items(self) -> Iterator[tuple]:
        """Return (name, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: object = None):
        """Return the value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: object = None):
        """Return the value of a name, after setting it to `default` if it is new."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str):
        """Remove a value and return it."""
        taken = self[key]
        del self[key]
        return taken

    def popitem(self) -> tuple:
        """Remove the last (name, value) pair and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> "ParameterDict":
        """Return another ParameterDict with the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def update(self, parameters: Mapping | Iterable) -> None:
        """Add values from a mapping (a plain dict in the order of its names) or from pairs; else raise a TypeError."""
        _require_iterable("ParametersDict.update", parameters, " of key/value pairs")
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        else:
            pairs = sorted(parameters.items()) if isinstance(parameters, Mapping) else parameters
        for place, pair in enumerate(pairs):
            key, value = _pair("ParameterDict", place, pair, "is")
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_description(value, Tensor.type)}" for key, value in self.items())
