import torch
import torch.nn.functional as F

# second-order MAML on y = a x + b, weights kept as a plain list of tensors
torch.manual_seed(0)


def init_weights(width=20):
    shapes = [(width, 1), (width,), (1, width), (1,)]
    ws = []
    for s in shapes:
        w = torch.zeros(*s) if len(s) == 1 else torch.randn(*s) * (1.0 / s[1]) ** 0.5
        ws.append(w.requires_grad_())
    return ws


def net(ws, x):
    return F.linear(torch.tanh(F.linear(x, ws[0], ws[1])), ws[2], ws[3])


def adapt(ws, x, y, lrs, steps=2):
    for _ in range(steps):
        loss = F.mse_loss(net(ws, x), y)
        grads = torch.autograd.grad(loss, ws, create_graph=True)
        ws = [w - lr.exp() * g for w, lr, g in zip(ws, lrs, grads)]
    return ws


meta = init_weights()
log_lrs = [torch.tensor(-3.0, requires_grad=True) for _ in meta]  # learned inner rates
opt = torch.optim.Adam([{"params": meta, "lr": 5e-3}, {"params": log_lrs, "lr": 2e-2}])

for it in range(40):
    opt.zero_grad()
    meta_loss = 0.0
    for _ in range(4):
        a, b = torch.randn(2)
        xs, xq = torch.randn(10, 1), torch.randn(10, 1)
        fast = adapt(meta, xs, a * xs + b, log_lrs)
        meta_loss = meta_loss + F.mse_loss(net(fast, xq), a * xq + b) / 4
    meta_loss.backward()
    opt.step()
    if it % 25 == 0:
        print(it, meta_loss.item(), [round(l.exp().item(), 3) for l in log_lrs])
