"""Modules that hold modules: `Sequential`, `ModuleList`, `ModuleDict`."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from backlight.errors import ArgumentError, DimError, ValueProblem
from backlight.nn.modules.module import Module, indented

__all__ = ["Container", "ModuleDict", "ModuleList", "Sequential"]


class NumberedModules(Module):
    """What `Sequential` and `ModuleList` share: children counted from 0, and reached as in a list."""

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
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Put a module before the one at `index`, and return self.

        Raises:
            IndexError: there is no such place.
            TypeError: `module` is no Module.
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
        """Take the module (or, by a slice, modules) out and return it."""
        taken = self[index]
        del self[index]
        return taken


class Sequential(NumberedModules):
    """Modules run one after the other, each on what the one before returned.

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
    """Modules in a list, which a plain Python list would hide from `parameters()`; it has no forward."""

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
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a mapping or from pairs.

        Raises:
            TypeError: `modules` is not iterable.
            ValueError: an element is no pair.
        """
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for number, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise ArgumentError(
                    f"ModuleDict update sequence element #{number} should be Iterable; is {type(pair).__name__}"
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueProblem(
                    f"ModuleDict update sequence element #{number} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]


class Container(Module):
    """Modules by name, the way of before `Module` could hold modules."""

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
