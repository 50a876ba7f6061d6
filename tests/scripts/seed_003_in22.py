"""backward through a sum and a product, with the gradient of the product retained."""

import torch

price = torch.tensor(3.0, requires_grad=True)
amount = torch.tensor(4.0, requires_grad=True)
fee = torch.tensor(5.0, requires_grad=True)
cost = amount * price
cost.retain_grad()
total = cost + fee

total.backward()

for name, value in (("price", price), ("amount", amount), ("fee", fee), ("cost", cost), ("total", total)):
    print(f"\n{name}")
    print(f"made by {value.grad_fn}")

print("\n")
print("of the price:", price.grad)
print("of the amount:", amount.grad)
print("of the fee:", fee.grad)
print("of the cost, which is no leaf:", cost.grad)
