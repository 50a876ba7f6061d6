"""Signatures that PyTorch 2.13 still takes, with its deprecation warnings."""

import warnings

import torch
from said import error

warnings.simplefilter("ignore")
t, a, b = torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
m, v = torch.eye(2), torch.ones(2)
for call in (
    lambda: torch.add(t, 2, a),
    lambda: t.add(2, a),
    lambda: t.clone().add_(2, a),
    lambda: torch.sub(t, 2, a),
    lambda: t.clone().sub_(2, a),
    lambda: torch.addcmul(t, 2, a, b),
    lambda: t.addcmul(2, a, b),
    lambda: t.clone().addcmul_(2, a, b),
    lambda: torch.addcdiv(t, 2, a, b),
    lambda: t.clone().addcdiv_(2, a, b),
    lambda: torch.addmm(2, m, m, m),
    lambda: torch.addmm(2, m, 3, m, m),
    lambda: torch.addmv(2, t, m, v),
    lambda: torch.addmv(2, t, 3, m, v),
    lambda: torch.addr(2, m, 3, v, v),
    lambda: torch.baddbmm(2, m[None], 3, m[None], m[None]),
    lambda: torch.addbmm(2, m, 3, m[None], m[None]),
    lambda: m.addmm(2, 3, m, m),
    lambda: m.clone().addmm_(2, m, m),
    lambda: torch.sum(m, 1, True),
    lambda: torch.norm(m, 2, 1),
    lambda: torch.max(m, 1)[0],
    lambda: torch.where(torch.tensor([True, False]), 1.0, 2.0),
    lambda: torch.nn.functional.mse_loss(a, b, size_average=False),
    lambda: torch.nn.functional.cross_entropy(m, torch.tensor([0, 1]), reduce=False),
    lambda: torch.nn.functional.upsample(torch.ones(1, 1, 2), scale_factor=2),
    lambda: a.new(3).shape,
    lambda: a.new([1, 2]),
    lambda: torch.Tensor([1, 2]).type("torch.DoubleTensor"),
    lambda: torch.norm(a, p="fro"),
    lambda: torch.std(a, False),
    lambda: torch.var(m, 1, False),
    lambda: a.masked_fill_(torch.tensor([1, 0], dtype=torch.uint8), 9),
):
    try:
        print(call())
    except Exception as problem:
        print(error(problem))
