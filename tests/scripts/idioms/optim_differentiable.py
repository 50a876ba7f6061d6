"""A step is differentiated through: what the new weights say of the old ones, and of a learned scale of the loss."""

import torch

OPTIONS = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"momentum": 0.5, "centered": False},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {"maximize": True},
    "Adamax": {},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {},
    "Rprop": {},
    "ASGD": {},
}

for name, options in OPTIONS.items():
    start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    weights = start.clone()
    optimizer = getattr(torch.optim, name)([weights], lr=0.1, differentiable=True, **options)
    inner = weights.clone()
    (weights.grad,) = torch.autograd.grad((inner * scale).pow(2).sum(), inner, create_graph=True)
    optimizer.step()
    weights.pow(2).sum().backward()
    print(
        name,
        [
            round(v, 6)
            for v in [*weights.tolist(), *start.grad.tolist(), scale.grad.item() if scale.grad is not None else 0]
        ],
    )

rate = torch.tensor(0.1, requires_grad=True)
weights = torch.ones(2).requires_grad_().clone()
optimizer = torch.optim.SGD([weights], lr=rate, differentiable=True)
weights.grad = torch.tensor([1.0, 2.0])
optimizer.step()
weights.sum().backward()
print(rate.grad)
