"""`torch.unique` of what requires grad is recorded, and has no derivative."""

import torch
from said import attempt

values = torch.tensor([[3.0, 1.0], [3.0, 1.0], [2.0, 5.0]], requires_grad=True)
calls = {
    "unique": lambda: torch.unique(values),
    "unique(dim=0)": lambda: torch.unique(values, dim=0),
    "unique_consecutive": lambda: torch.unique_consecutive(values, dim=0),
    "method": lambda: values.unique(sorted=True),
}
for name, call in calls.items():
    found = call()
    print(name, found, type(found.grad_fn).__name__)
    attempt("backward", lambda found=found: found.sum().backward())
found, inverse, counts = torch.unique(values, return_inverse=True, return_counts=True)
print(found.requires_grad, inverse.requires_grad, counts.requires_grad, inverse, counts)
sums = torch.zeros(len(found)).index_add(0, inverse.flatten(), values.flatten())
sums.square().sum().backward()
print(values.grad)
