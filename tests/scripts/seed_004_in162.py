"""The functions behind a product and a sum, and the gradients of their three leaves."""

import torch

price = torch.tensor(3.0, requires_grad=True)
amount = torch.tensor(4.0, requires_grad=True)
fee = torch.tensor(5.0, requires_grad=True)
cost = amount * price
total = cost + fee
total.backward()

print("price, a leaf")
print(f"made by {price.grad_fn}")

print("\namount, a leaf")
print(f"made by {amount.grad_fn}")

print("\nfee, a leaf")
print(f"made by {fee.grad_fn}")

print("\ncost")
print(f"made by {cost.grad_fn}")

print("\ntotal")
print(f"made by {total.grad_fn}")
print("\n")
print("of the price:", price.grad)
print("of the amount:", amount.grad)
print("of the fee:", fee.grad)
