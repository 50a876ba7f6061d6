import torch

# linear regression from scratch, as in lecture 2
torch.manual_seed(0)
n = 100
x = torch.rand(n, 2)
true_w = torch.tensor([2.0, -3.4])
y = x @ true_w + 4.2 + 0.01 * torch.randn(n)

w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.3

for epoch in range(200):
    y_hat = x @ w + b
    loss = ((y_hat - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad.zero_()
    b.grad.zero_()

print("w", w.tolist(), "b", b.item(), "loss", loss.item())
