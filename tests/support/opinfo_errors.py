"""Runs PyTorch's own samples of wrong calls (error_inputs of OpInfo): the same exception type and the same first line.

python tests/support/opinfo_errors.py [name …]      prints a line a wrong call that differs, and the totals
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from opinfo_complex import all_entries
from opinfo_run import Missing, converted, full_name, our_function, same_tensor

from backlight.errors import ShapeError

NO_ERROR = "no error"


@dataclass(frozen=True)
class Raised:
    """What a call raised: the names of the exception's classes, nearest first, and its first line."""

    kinds: tuple[str, ...]
    line: str

    def __str__(self) -> str:
        return f"{self.kinds[0]}: {self.line}"


@dataclass(frozen=True)
class Difference:
    """A wrong call at which backlight does not raise what PyTorch raises."""

    name: str
    number: int
    ours: Raised
    theirs: Raised


def raised_by(function: Callable, arguments: tuple) -> Raised:
    """Return what a call raises; "no error" if it raises none."""
    input, args, kwargs = arguments
    try:
        function(input, *args, **kwargs)
    except Exception as problem:
        kinds = tuple(kind.__name__ for kind in type(problem).__mro__ if issubclass(kind, Exception))
        return Raised(kinds, str(problem).partition("\n")[0])
    return Raised((NO_ERROR,), "")


def call_here(entry, arguments: tuple) -> Callable[[], Raised]:
    """Return a function that gives what backlight raises for the arguments of a call of PyTorch's, as they are now."""
    try:
        function, ours = our_function(entry), converted(arguments, copied_tensors(arguments))
    except Missing as problem:
        found = Raised(("missing",), str(problem))
        return lambda: found
    except ShapeError as problem:  # more dims than NumPy has: the tensor itself is refused
        found = Raised(("RuntimeError",), str(problem))
        return lambda: found
    return lambda: raised_by(function, ours)


def tensors_of(value: object) -> list[torch.Tensor]:
    """Return the dense tensors in nested arguments."""
    if isinstance(value, torch.Tensor):
        return [value] if value.layout is torch.strided and not value.is_meta else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in tensors_of(part)]


def copied_tensors(arguments: tuple) -> dict:
    """Return our tensors by the ids of PyTorch's; those that share memory with others or overlap themselves do here."""
    found, memories = {}, {}
    tensors = {id(one): one for one in tensors_of(arguments)}
    places = [one.untyped_storage().data_ptr() for one in tensors.values()]
    for one in tensors.values():
        if one.ndim <= 64 and not one.requires_grad and not one.is_conj() and one.is_contiguous():
            found[id(one)] = same_tensor(one.clone())  # NumPy's view of memory forbids PyTorch to resize it
        place = one.untyped_storage().data_ptr()
        if one.numel() and (places.count(place) > 1 or 0 in one.stride()):
            if place not in memories:
                whole = one.detach().as_strided((one.untyped_storage().nbytes() // one.itemsize,), (1,), 0)
                memories[place] = same_tensor(whole.clone())
            found[id(one)] = memories[place].as_strided(one.shape, one.stride(), one.storage_offset())
    return found


def wrong_calls(entry) -> list:
    """Return PyTorch's samples of wrong calls of an entry, none if it has none."""
    return list(entry.error_inputs("cpu")) if entry.error_inputs_func is not None else []


def differences(entry) -> Iterator[Difference]:
    """Yield the wrong calls of an entry at which backlight differs; where PyTorch raises nothing, none is wrong."""
    for number, wrong in enumerate(wrong_calls(entry)):
        sample = wrong.sample_input
        arguments = (sample.input, sample.args, sample.kwargs)
        here = call_here(entry, arguments)  # before PyTorch writes to them
        theirs, ours = raised_by(entry.op, arguments), here()
        if theirs.kinds[0] != NO_ERROR and not (theirs.kinds[0] in ours.kinds and ours.line.startswith(theirs.line)):
            yield Difference(full_name(entry), number, ours, theirs)


def main(names: list[str]) -> None:
    entries = calls = failed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in all_entries():
            if names and full_name(entry) not in names and entry.name not in names:
                continue
            count = len(wrong_calls(entry))
            found = list(differences(entry))
            entries, calls, failed = entries + bool(count), calls + count, failed + bool(found)
            for one in found:
                print(f"{one.name} #{one.number}\n  PyTorch   {one.theirs}\n  backlight {one.ours}", flush=True)
    print(f"{entries} entries with {calls} wrong calls; {failed} entries differ")


if __name__ == "__main__":
    main(sys.argv[1:])
