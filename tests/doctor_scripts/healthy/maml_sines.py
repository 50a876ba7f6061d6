import torch
import torch.nn.functional as F


def init_params(hidden=24):
    shapes = [(1, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, 1), (1,)]
    return [(torch.randn(s) / s[0] ** 0.5 if len(s) == 2 else torch.zeros(s)).requires_grad_() for s in shapes]


def net(x, params):
    w1, b1, w2, b2, w3, b3 = params
    h = torch.tanh(x @ w1 + b1)
    h = torch.tanh(h @ w2 + b2)
    return h @ w3 + b3


class SineTask:
    def __init__(self):
        self.amplitude = 0.5 + 2 * torch.rand(1)
        self.phase = 3.14 * torch.rand(1)

    def sample(self, n):
        x = torch.rand(n, 1) * 6 - 3
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(params, x, y, inner_lr, steps):
    fast = params
    for _ in range(steps):
        loss = F.mse_loss(net(x, fast), y)
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [p - inner_lr * g for p, g in zip(fast, grads)]
    return fast


def main():
    torch.manual_seed(0)
    params = init_params()
    meta_optimizer = torch.optim.Adam(params, lr=5e-3)
    for it in range(20):
        meta_loss = 0.0
        for _ in range(3):
            task = SineTask()
            fast = adapt(params, *task.sample(10), inner_lr=0.05, steps=2)
            x, y = task.sample(10)
            meta_loss = meta_loss + F.mse_loss(net(x, fast), y)
        meta_optimizer.zero_grad()
        meta_loss.backward()
        meta_optimizer.step()
        if it % 5 == 0:
            print(it, meta_loss.item() / 3)


if __name__ == "__main__":
    main()
