"""Evaluates one expression on PyTorch and on backlight: both give the same value, or the same error.

In an expression `torch` is the module under test and `np` NumPy.
"""

import re
import warnings

import numpy as np
import pytest
import torch

import backlight

# the built-in kinds that a user may catch; PyTorch's NotImplementedError for a dtype is a RuntimeError
KINDS = (ValueError, TypeError, IndexError, AssertionError, RuntimeError, OverflowError)


def lines(text: str) -> list[str]:
    """Return the expressions in a text, one a line."""
    return text.strip().splitlines()


def without_cuda(expression: str):
    """Return an expression as a parameter that runs where PyTorch was built without CUDA, as backlight is."""
    built = pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch was built with CUDA")
    return pytest.param(expression, marks=built)


def evaluate(module, expression: str, **names):
    """Return what an expression gives, or the exception that it raises."""
    try:
        return eval(expression, {"torch": module, "np": np, **names})
    except Exception as problem:
        return problem


def described(value):
    """Return a value in a form that compares across the two modules."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        stride = value.stride() if value.numel() else None
        return repr(value), str(value.dtype), tuple(value.shape), stride, value.requires_grad, exact(value)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [described(one) for one in value]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    return value if isinstance(value, (bool, int, float, str, type(None))) else re.sub("0x[0-9a-f]+", "0x", repr(value))


def exact(tensor) -> list[str]:
    """Return the elements as text that tells every bit: -0.0 from 0.0, and nan equal to nan."""
    tensor = tensor.detach()
    if tensor.is_complex():
        numbers = tensor.reshape(-1).tolist()
        return [part.hex() for number in numbers for part in (number.real, number.imag)]
    numbers = (tensor.to(torch.float64) if isinstance(tensor, torch.Tensor) else tensor.double()).reshape(-1).tolist()
    return [float(number).hex() for number in numbers]


def assert_same(expression: str, **names) -> None:
    """Assert that an expression gives the same value, or an error of the same kind that begins with the same words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = evaluate(torch, expression, **names)
        ours = evaluate(backlight, expression, **names)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{expression} gives {ours!r}; PyTorch raises {theirs!r}"
        kind = next(kind for kind in KINDS if isinstance(theirs, kind))
        assert isinstance(ours, kind), f"{expression} raises {ours!r}; PyTorch raises {theirs!r}"
        wanted = str(theirs).rstrip(". ")
        assert str(ours).startswith(wanted), f"{expression} says {ours}; PyTorch says {wanted}"
        return
    assert not isinstance(ours, Exception), f"{expression} raises {ours!r}; PyTorch gives {theirs!r}"
    assert described(ours) == described(theirs), f"{expression} gives {ours!r}; PyTorch gives {theirs!r}"
