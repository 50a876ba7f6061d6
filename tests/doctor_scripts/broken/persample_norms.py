import torch
import torch.nn as nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 3))
params = {k: v.detach() for k, v in net.named_parameters()}
x = torch.randn(32, 12)
y = torch.randint(0, 3, (32,))


def sample_loss(p, xi, yi):
    logits = functional_call(net, p, (xi.unsqueeze(0),))
    return nn.functional.cross_entropy(logits, yi.unsqueeze(0))


net.train()
per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))  # here
for step in range(10):
    grads = per_sample(params, x, y)  # here
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    scale = (1.0 / norms).clamp(max=1.0)
    mean = {k: torch.einsum("b,b...->...", scale, g) / len(x) for k, g in grads.items()}
    params = {k: p - 0.5 * mean[k] for k, p in params.items()}
    print(step, "largest norm", norms.max().item())
