"""`gradcheck`: undefined gradients, and what it refuses."""

import warnings

import torch
from said import attempt
from torch.autograd import Function, gradcheck, gradgradcheck

warnings.simplefilter("ignore")


class Undefined(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2, a * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


class Unready(Undefined):
    @staticmethod
    def forward(ctx, a):
        ctx.set_materialize_grads(False)
        return a * 2, a * 3


class NeverNone(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.set_materialize_grads(False)
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return torch.ones(2, dtype=torch.float64) if g is None else g * 2


class Wrong(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


x = torch.ones(2, dtype=torch.float64, requires_grad=True)
attempt("fine", lambda: gradcheck(torch.sin, x))
attempt("two outputs", lambda: gradcheck(Undefined.apply, x))
attempt("unready", lambda: gradcheck(Unready.apply, x))
attempt("never none", lambda: gradcheck(NeverNone.apply, x))
attempt("wrong", lambda: gradcheck(Wrong.apply, x))
attempt("quiet", lambda: gradcheck(Wrong.apply, x, raise_exception=False))
attempt("float32", lambda: gradcheck(torch.sin, torch.ones(2, requires_grad=True)))
attempt("no grad", lambda: gradcheck(torch.sin, torch.ones(2, dtype=torch.float64)))
attempt("not recorded", lambda: gradcheck(lambda a: a.detach(), x))
attempt("no tensor", lambda: gradcheck(lambda a: 3, x))
attempt("expanded", lambda: gradcheck(torch.sin, torch.ones(1, dtype=torch.float64, requires_grad=True).expand(3)))
attempt("second", lambda: gradgradcheck(lambda a: a.pow(3), x))
attempt("fast", lambda: gradcheck(torch.exp, x, fast_mode=True))
attempt("random", lambda: gradcheck(lambda a: a * torch.rand(()), x, nondet_tol=0.0))
