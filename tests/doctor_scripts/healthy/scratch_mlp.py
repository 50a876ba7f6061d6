import torch

# two-layer net with hand-written SGD and momentum, moons-like data
torch.manual_seed(0)
n = 200
t = 3.14159 * torch.rand(n)
top = torch.stack([t.cos(), t.sin()], 1)
bottom = torch.stack([1 - t.cos(), 0.4 - t.sin()], 1)
X = torch.cat([top, bottom]) + 0.1 * torch.randn(2 * n, 2)
Y = torch.cat([torch.zeros(n), torch.ones(n)])

W1 = (torch.randn(2, 16) * 0.7).requires_grad_()
b1 = torch.zeros(16, requires_grad=True)
W2 = (torch.randn(16, 1) * 0.3).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
params = [W1, b1, W2, b2]
velocity = [torch.zeros_like(p) for p in params]

lr, mu = 0.2, 0.9
for epoch in range(15):
    order = torch.randperm(len(X))
    for idx in order.split(50):
        logits = (torch.tanh(X[idx] @ W1 + b1) @ W2 + b2).squeeze(1)
        # log-sum-exp form of the logistic loss
        loss = (torch.logaddexp(torch.zeros_like(logits), logits) - Y[idx] * logits).mean()
        loss.backward()
        with torch.no_grad():
            for p, v in zip(params, velocity):
                v.mul_(mu).add_(p.grad)
                p -= lr * v
                p.grad = None
    if epoch % 5 == 0:
        with torch.no_grad():
            acc = (((torch.tanh(X @ W1 + b1) @ W2 + b2).squeeze(1) > 0) == (Y > 0.5)).float().mean()
        print(epoch, loss.item(), acc.item())
