"""Under no_grad nothing is recorded, and the tensors that go in stay as they are."""

import torch

points = torch.randn(2, 2, requires_grad=True)
print(f"before: {points.requires_grad}")

with torch.no_grad():
    print("nothing is recorded from here")
    doubled = points * 2
    print(f"  result requires grad: {doubled.requires_grad}")
    print(f"  result made by: {doubled.grad_fn}")

print(f"after: {points.requires_grad}")
