"""retain_grad keeps the gradients of results, also that of the last one."""

import torch

price = torch.tensor(3.0, requires_grad=True)
amount = torch.tensor(4.0, requires_grad=True)
fee = torch.tensor(5.0, requires_grad=True)

cost = amount * price + fee
cost.retain_grad()

rate = torch.tensor(4.0, requires_grad=True)
tip = torch.tensor(4.0, requires_grad=True)

total = rate * cost + tip
total.retain_grad()

total.backward()

print("of the price:", price.grad)
print("of the amount:", amount.grad)
print("of the fee:", fee.grad)
print("of the cost:", cost.grad)
print("of the rate:", rate.grad)
print("of the tip:", tip.grad)
print("of the total:", total.grad)
