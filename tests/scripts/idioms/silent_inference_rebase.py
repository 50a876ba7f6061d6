"""Inference mode and the version counters and histories of views."""

import torch
from said import attempt

leaf = torch.ones(2, 2, requires_grad=True)
x = leaf * 1
with torch.inference_mode():
    v = x.view(-1)
    attempt("write through a view", lambda: v.mul_(3).tolist())
    print(x.tolist(), x._version, x.grad_fn is not None)
    with torch.inference_mode(False):
        n = torch.ones(2, requires_grad=True)
        print((n * 2).requires_grad, (n * 2).is_inference())
attempt("backward after", lambda: x.sum().backward() or leaf.grad.tolist())
y = leaf * 2
z = y.pow(2)
with torch.inference_mode():
    y.add_(1)
attempt("saved and changed", lambda: z.sum().backward())
with torch.no_grad():
    w = (leaf * 1)[0]
attempt("no_grad view", lambda: (w.requires_grad, w.mul_(2).requires_grad))
with torch.no_grad():
    p = x[0]
attempt("no_grad view written", lambda: p.mul_(2))
with torch.inference_mode():
    t = torch.zeros(2)
attempt("set item", lambda: t.__setitem__(0, 1.0))
attempt("into normal", lambda: torch.zeros(2).copy_(t).is_inference())
attempt("stack", lambda: torch.stack([t, torch.ones(2)]).is_inference())
attempt("grad of inference", lambda: setattr(leaf, "grad", None))
