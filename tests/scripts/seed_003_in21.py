"""Leaves have no grad_fn; results have one, and are no leaves."""

import torch

price = torch.tensor(3.0, requires_grad=True)
amount = torch.tensor(4.0, requires_grad=True)
fee = torch.tensor(5.0, requires_grad=True)

cost = amount * price
cost.retain_grad()

total = cost + fee

print("price")
print(f"made by {price.grad_fn}")
print(f"leaf {price.is_leaf}")
print(price.requires_grad)

print("\ncost")
print(f"made by {cost.grad_fn}")
print(f"leaf {cost.is_leaf}")
print(cost.requires_grad)

print("\ntotal")
print(f"made by {total.grad_fn}")
print(f"leaf {total.is_leaf}")
print(total.requires_grad)
