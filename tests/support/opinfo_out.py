"""Runs `out=` on PyTorch's own test samples: the same result, in the same tensor, with the same warning or error.

python tests/support/opinfo_out.py [name …]      prints a line an entry that differs
"""

import sys
import warnings

import torch
from opinfo_run import RANDOM_SEED, RTOL, Outcome, compare, converted, entries, full_name, our_function, same_tensor

import backlight

LOOSE = (RTOL, 1e-9)


def flat(result) -> list:
    """Return the tensors of a result."""
    return [result] if isinstance(result, torch.Tensor) else list(result)


def outs_like(result, change) -> list:
    """Return tensors for a result to be written to, as PyTorch's; `change` makes one of each of its tensors."""
    return [change(one) for one in flat(result)]


# What the caller's tensors look like: of the right shape, empty, too small, of another dtype, with requires_grad.
NARROWER = {torch.float64: torch.float32, torch.int64: torch.int32}
KINDS = {
    "right": lambda one: torch.full_like(one, 1),
    "empty": lambda one: torch.empty(0, dtype=one.dtype),
    "resized": lambda one: torch.ones((2, *one.shape), dtype=one.dtype),
    "another dtype": lambda one: torch.ones(one.shape, dtype=torch.int64 if one.is_floating_point() else one.dtype),
    "narrower dtype": lambda one: torch.ones(one.shape, dtype=NARROWER.get(one.dtype, one.dtype)),
    "requires grad": lambda one: torch.ones(one.shape, dtype=one.dtype, requires_grad=one.is_floating_point()),
}


def attempt(function, arguments, outs, several: bool):
    """Call with `out`; return (error or None, whether it warned of resizing, the outs, whether they are returned)."""
    input, args, kwargs = arguments
    torch.default_generator.manual_seed(RANDOM_SEED)
    backlight.manual_seed(RANDOM_SEED)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = function(input, *args, **kwargs, out=tuple(outs) if several else outs[0])
        except (RuntimeError, TypeError, IndexError) as problem:
            return problem, False, [], False
    resized = any("was resized since it had shape" in str(one.message) for one in said)
    returned = list(found or outs) if several else [found]  # some return nothing
    return None, resized, outs, all(a is b for a, b in zip(returned, outs))


def run_out(entry, function, sample) -> None:
    """Compare all ways to give `out` for one sample."""
    arguments = (sample.input, sample.args, sample.kwargs)
    result = entry.op(sample.input, *sample.args, **sample.kwargs)
    several = not isinstance(result, torch.Tensor)
    for name, change in KINDS.items():
        theirs = outs_like(result, change)
        ours = [same_tensor(one.detach().clone()).requires_grad_(one.requires_grad) for one in theirs]
        their_error, their_warning, theirs, _ = attempt(entry.op, arguments, theirs, several)
        our_error, our_warning, ours, same = attempt(function, converted(arguments, {}), ours, several)
        what = f"out: {name}"
        if their_error is not None:
            assert our_error is not None, f"{what}: no error, PyTorch's is {their_error}"
            if name == "narrower dtype":
                start = " ".join(str(their_error).split(" (Could")[0].split())
                assert " ".join(str(our_error).split()).startswith(start), f"{what}: {our_error}, PyTorch's: {start}"
            continue
        assert our_error is None, f"{what}: {our_error!r}, PyTorch has no error"
        assert same, f"{what}: another tensor is returned"
        assert our_warning == their_warning, f"{what}: {'no ' if their_warning else ''}warning of resizing"
        compare(ours, theirs, what, (1e-5, 1e-6) if name == "narrower dtype" else LOOSE)


def run_entry_out(entry, most_samples: int) -> Outcome:
    """Run the first samples of an entry that takes `out`, and say how it went."""
    name, count = full_name(entry), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = our_function(entry)
        for sample in entry.sample_inputs("cpu", torch.float64, requires_grad=False):
            if count >= most_samples:
                break
            count += 1
            try:
                run_out(entry, function, sample)
            except (AssertionError, AttributeError, ValueError) as problem:
                return Outcome(name, "fail", count, f"sample {count}: {' '.join(str(problem).split())[:300]}")
    return Outcome(name, "pass", count)


def main(names) -> None:
    for entry in entries():
        if entry.supports_out and torch.float64 in entry.dtypes and (not names or full_name(entry) in names):
            outcome = run_entry_out(entry, 5)
            if outcome.status != "pass" or names:
                print(f"{outcome.status:8} {outcome.name:45} {outcome.samples:4}  {outcome.reason}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
