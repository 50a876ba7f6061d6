"""A detached tensor has no history and shares its memory with the tensor that it came from."""

import torch

torch.manual_seed(2)
points = torch.randn(3, requires_grad=True)
doubled = points * 2
plain = doubled.detach()

print("detached")
print(f"result requires grad: {doubled.requires_grad}")
print(f"detached requires grad: {plain.requires_grad}")

plain.add_(1)
print(f"the result, after a write to its detached twin: {doubled}")
