"""Meta-learning: gradients through steps of gradient descent, by create_graph and by torch.func."""

import torch
from torch.func import grad, vmap
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def net(params, x):
    for number, (weight, bias) in enumerate(params):
        x = F.linear(x, weight, bias)
        x = torch.tanh(x) if number + 1 < len(params) else x
    return x


params = [(torch.randn(8, 1) * 0.5, torch.zeros(8)), (torch.randn(1, 8) * 0.5, torch.zeros(1))]
params = [(weight.requires_grad_(), bias.requires_grad_()) for weight, bias in params]
flat = [each for pair in params for each in pair]
optimizer = torch.optim.Adam(flat, lr=1e-2)
points = torch.linspace(-2, 2, 10).unsqueeze(1)
for outer in range(4):
    total = 0.0
    for phase in torch.rand(3) * 3:
        target = torch.sin(points + phase)
        slopes = torch.autograd.grad(F.mse_loss(net(params, points), target), flat, create_graph=True)
        steps = iter(slopes)
        adapted = [(weight - 0.1 * next(steps), bias - 0.1 * next(steps)) for weight, bias in params]
        total = total + F.mse_loss(net(adapted, points), target)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(f"{outer}: {total.item():.4f}")


def after_one_step(params, x, y):
    slopes = grad(lambda params: F.mse_loss(net(params, x), y))(params)
    moved = [tuple(p - 0.1 * s for p, s in zip(*pair)) for pair in zip(params, slopes)]
    return F.mse_loss(net(moved, x), y)


plain = [tuple(each.detach() for each in pair) for pair in params]
tasks = torch.stack([torch.sin(points + phase) for phase in (0.0, 1.0)])
losses = vmap(after_one_step, in_dims=(None, None, 0))(plain, points, tasks)
print([f"{each:.4f}" for each in losses.tolist()])
meta = grad(lambda params: vmap(after_one_step, in_dims=(None, None, 0))(params, points, tasks).sum())(plain)
print([tuple(each.shape) for pair in meta for each in pair])
