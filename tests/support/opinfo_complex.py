"""The complex pass of opinfo_run.py: PyTorch's own samples in complex128; what takes none must refuse them.

python tests/support/opinfo_complex.py [name …]      prints a line an entry, with the first difference
"""

import sys
import warnings

import torch
from opinfo_database import op_database
from opinfo_run import (
    Missing,
    Outcome,
    compare,
    converted,
    elements_of,
    full_name,
    our_function,
    run_entry,
)

MOST_ELEMENTS, MOST_SAMPLES = 2_000, 6


def all_entries():
    """Return all of PyTorch's entries, those without a gradient too."""
    return list(op_database())


def takes_complex(entry) -> bool:
    """Tell whether PyTorch takes complex numbers in an entry."""
    return torch.complex128 in entry.dtypes


def run_complex(entry) -> Outcome:
    """Compare an entry with PyTorch in complex128: forward, gradient and second gradient."""
    return run_entry(entry, MOST_ELEMENTS, torch.complex128, MOST_SAMPLES)


def made_complex(value):
    """Return a sample's value with float64 tensors made complex."""
    if isinstance(value, torch.Tensor):
        dense = value.dtype is torch.float64 and value.layout is torch.strided
        return value.to(torch.complex128) + 0.25j if dense else value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(made_complex(part) for part in value)
    if isinstance(value, dict):
        return {key: made_complex(part) for key, part in value.items()}
    return value


def run_refused(entry) -> Outcome:
    """Give an entry that takes no complex numbers some: where PyTorch raises, backlight must, else give its result.

    backlight may refuse more than PyTorch does. The first samples count whose tensors are float64.
    """
    name, count = full_name(entry), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function = our_function(entry)
        except Missing as problem:
            return Outcome(name, "missing", 0, str(problem))
        for sample in entry.sample_inputs("cpu", torch.float64, requires_grad=False):
            if elements_of(sample) > MOST_ELEMENTS or count >= 3:
                continue
            count += 1
            input, args, kwargs = made_complex((sample.input, sample.args, sample.kwargs))
            try:
                theirs = entry.op(input, *args, **kwargs)
            except Exception:
                theirs = None
            try:
                input, args, kwargs = converted((input, args, kwargs), {})
            except Missing as problem:  # a layout that backlight has not
                return Outcome(name, "missing", count, str(problem))
            try:
                ours = function(input, *args, **kwargs)
            except Exception:
                continue
            if theirs is None:
                return Outcome(name, "fail", count, f"sample {count}: backlight gives {ours!r}, PyTorch raises")
            try:
                compare(ours, theirs, "forward")
            except AssertionError as problem:
                return Outcome(name, "fail", count, f"sample {count}: {' '.join(str(problem).split())[:300]}")
    return Outcome(name, "pass", count)


def main(names) -> None:
    for entry in all_entries():
        name = full_name(entry)
        if names and name not in names:
            continue
        if takes_complex(entry):
            outcome = run_complex(entry)
        elif torch.float64 in entry.dtypes:
            outcome = run_refused(entry)
        else:
            continue
        print(f"{outcome.status:8} {name:45} {outcome.samples:4}  {outcome.reason}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
