"""Which options optimizers take on the CPU, and what they print."""

import torch
from said import error

for kind in (
    "SGD",
    "Adam",
    "AdamW",
    "NAdam",
    "RAdam",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "RMSprop",
    "Rprop",
    "ASGD",
    "LBFGS",
    "Muon",
    "Adafactor",
):
    maker = getattr(torch.optim, kind)
    for options in (
        {"foreach": True},
        {"fused": True},
        {"capturable": True},
        {"maximize": True},
        {"differentiable": True},
        {"foreach": True, "fused": True},
        {"foreach": True, "differentiable": True},
        {"fused": True, "differentiable": True},
    ):
        weights = torch.nn.Parameter(torch.ones(2, 2))
        try:
            optimizer = maker([weights], **options)
            weights.grad = torch.ones(2, 2)
            optimizer.step(lambda: 1.0)
            print(kind, options, [round(v, 5) for v in weights.flatten().tolist()[:1]])
        except Exception as problem:
            print(kind, options, error(problem))
