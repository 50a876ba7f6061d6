import torch

torch.manual_seed(14)
x = torch.randn(100, 3)
y = x @ torch.tensor([2.0, -1.0, 0.5]) + 1.0
w = torch.zeros(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.1

for i in range(50):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
        w.grad.zero_()
        b.grad.zero_()
    if i % 10 == 0 or i == 49:
        print(i, loss.item())
