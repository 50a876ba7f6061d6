"""Gradients add up over several backward passes until an optimizer clears them."""

import torch

torch.manual_seed(1)
layer = torch.nn.Linear(3, 1)
descent = torch.optim.SGD(layer.parameters(), lr=0.01)
sample = torch.randn(1, 3)

descent.zero_grad()
first = layer(sample)
first.backward()
print(f"bias gradient, once:\n{layer.bias.grad.clone()}")

second = layer(sample)
second.backward()
print(f"bias gradient, twice and not cleared:\n{layer.bias.grad}")

descent.zero_grad()
third = layer(sample)
third.backward()
print(f"bias gradient, cleared before:\n{layer.bias.grad}")
