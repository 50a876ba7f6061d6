"""Overlapping `out=` and other writes into memory that is read or shared."""

import torch
from said import attempt


def six():
    return torch.arange(6.0)


attempt("add out overlapping", lambda x=six(): torch.add(x[:5], 1, out=x[1:]))
attempt("mul out same", lambda x=six(): torch.mul(x, 2, out=x).tolist())
attempt("exp out overlapping", lambda x=six(): torch.exp(x[:3], out=x[1:4]))
attempt("expanded in place", lambda: torch.zeros(1).expand(3).add_(1))
attempt("expanded out", lambda: torch.add(torch.ones(3), 1, out=torch.zeros(1).expand(3)))
attempt("copy_ overlapping", lambda x=six(): x[1:].copy_(x[:-1]))
attempt("cat out", lambda x=six(): torch.cat([x[:2], x[2:4]], out=x[:4]))
attempt("matmul out", lambda: torch.mm(torch.eye(2), torch.ones(2, 2), out=torch.zeros(1).expand(2, 2)))
attempt("add_ overlapping", lambda x=six(): x[1:].add_(x[:-1]))
attempt("fill_ expanded", lambda: torch.zeros(1).expand(3).fill_(1))
attempt("nonzero out float", lambda: torch.nonzero(torch.tensor([0, 1]), out=torch.zeros(0)))
attempt("nonzero out long", lambda: torch.nonzero(torch.tensor([0, 1]), out=torch.zeros(0, dtype=torch.long)))
attempt("argmax out", lambda: torch.argmax(torch.ones(2), out=torch.zeros(())))
attempt("sort out", lambda: torch.sort(torch.ones(2), out=(torch.zeros(2), torch.zeros(2))))
attempt("eq out float", lambda: torch.eq(torch.ones(2), 1, out=torch.zeros(2)))
attempt(
    "where out",
    lambda: torch.where(
        torch.tensor([True, False]), torch.ones(2), torch.zeros(2), out=torch.zeros(2, dtype=torch.int)
    ),
)
attempt("scatter_ expanded", lambda: torch.zeros(1).expand(3).scatter_(0, torch.tensor([0]), 1.0))
attempt("bitwise", lambda: torch.bitwise_and(torch.tensor([1]), 1, out=torch.zeros(1)))
attempt("cumsum out", lambda x=six(): torch.cumsum(x[:3], 0, out=x[1:4]))
attempt("clamp out", lambda x=six(): torch.clamp(x[:3], 0, 1, out=x[1:4]))
attempt("normal_ expanded", lambda: torch.zeros(1).expand(3).normal_())
