"""Runs one piece of code on PyTorch and on backlight, and compares all that it shows: prints, warnings, the error."""

import re
import warnings
from dataclasses import dataclass

import torch
from torch.autograd.gradcheck import GradcheckError as TheirGradcheckError

import backlight
from backlight.transforms.numerical_jacobians import GradcheckError

ADDRESS = re.compile(r"0x[0-9a-f]+")
INTERNAL = re.compile(r" ?\(Triggered internally at .*\)$", re.DOTALL)

TWINS = {
    torch.linalg.LinAlgError: backlight.linalg.LinAlgError,
    TheirGradcheckError: GradcheckError,
}


@dataclass
class Outcome:
    """What a run showed."""

    printed: str
    warned: list[tuple[type, str]]
    error: Exception | None


def run(module, source: str, **names) -> Outcome:
    """Run `source` with `torch` bound to a module, and other names to what they are given as."""
    lines, error = [], None

    def show(*values):
        lines.append(" ".join(str(value) for value in values))

    namespace = {"torch": module, "print": show, "__name__": "snippet", **names}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"backlight\.")
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated")  # PyTorch's own
        warnings.filterwarnings("ignore", message=".* signature of throw\\(\\) is deprecated")  # too, on Python 3.12
        try:
            exec(compile(source, "<snippet>", "exec"), namespace)
        except Exception as problem:
            error = problem
    warned = [(one.category, INTERNAL.sub("", str(one.message))) for one in caught]
    return Outcome(ADDRESS.sub("0x", "\n".join(lines)), warned, error)


def always_warning(module, source: str, **names) -> Outcome:
    """Run with the warnings given that a process gets only once."""
    previous = module.is_warn_always_enabled()
    module.set_warn_always(True)
    try:
        return run(module, source, **names)
    finally:
        module.set_warn_always(previous)


def assert_shows_the_same(source: str) -> Exception | None:
    """Run on both; ours may say more in an error or a warning, after PyTorch's words. Return our error."""
    theirs, ours = always_warning(torch, source), always_warning(backlight, source)
    said = f"{type(ours.error).__name__}: {ours.error}"
    if theirs.error is None:
        assert ours.error is None, f"PyTorch raises nothing, ours {said}"
    else:
        kind = TWINS.get(type(theirs.error), type(theirs.error))
        assert isinstance(ours.error, kind), f"PyTorch raises {theirs.error!r}, ours {said}"
        assert str(ours.error).startswith(str(theirs.error)), f"PyTorch says {theirs.error}\nours {said}"
    assert ours.printed == theirs.printed
    assert [kind for kind, _ in ours.warned] == [kind for kind, _ in theirs.warned]
    for (_, mine), (_, other) in zip(ours.warned, theirs.warned):
        assert mine.startswith(other), f"PyTorch warns {other}\nours {mine}"
    return ours.error
