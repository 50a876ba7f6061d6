"""no_grad stops recording and changes no tensor; what is made inside stays without history."""

import torch

base = torch.randn(2, 2).requires_grad_()
print(base.requires_grad)
print((base**2).requires_grad)

with torch.no_grad():
    print((base**2).requires_grad)
    square = base**2

print(square.requires_grad)
