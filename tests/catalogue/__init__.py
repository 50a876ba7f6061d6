"""The catalogue of mistakes: 125 programs, written so that the same words run on PyTorch and on backlight."""

from catalogue import (
    autograd_grad,
    calling_backward,
    extras,
    in_place,
    leaving,
    modes_hooks_loops,
    reading_grad,
    requires_grad,
)

CASES = (
    *reading_grad.CASES,
    *calling_backward.CASES,
    *in_place.CASES,
    *requires_grad.CASES,
    *leaving.CASES,
    *autograd_grad.CASES,
    *modes_hooks_loops.CASES,
    *extras.CASES,
)
