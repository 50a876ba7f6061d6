"""backward fills the gradients of leaves; reading that of another tensor gives None and a warning."""

import torch

width = torch.tensor(2.0, requires_grad=True)
height = torch.tensor(3.0, requires_grad=True)
border = width + height
product = border * (height * 2)

product.backward()

print("after backward")
print(f"d product / d width: {width.grad}")
print(f"d product / d height: {height.grad}")
print(f"kept for border: {border.grad}")
