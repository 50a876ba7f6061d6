"""`.data =` of another dtype, shape or device, and what it does to gradients."""

import torch
from said import attempt

w = torch.nn.Parameter(torch.ones(2))
attempt("another dtype", lambda: setattr(w, "data", w.data.double()))
attempt("dtype", lambda: (w.dtype, w.requires_grad))
attempt("int", lambda: setattr(torch.nn.Parameter(torch.ones(2)), "data", torch.ones(2, dtype=torch.int)))
attempt("shape", lambda: setattr(w, "data", torch.ones(3, 3).double()))
attempt("no tensor", lambda: setattr(w, "data", [1.0]))
attempt("shape now", lambda: w.shape)
x = torch.ones(2)
attempt("plain int", lambda: setattr(x, "data", torch.ones(2, dtype=torch.int)))
attempt("plain dtype", lambda: x.dtype)
y = torch.ones(2, requires_grad=True)
loss = (y * y).sum()
y.data = torch.full((2,), 5.0)
attempt("saved values", lambda: loss.backward() or y.grad.tolist())
attempt("grad of another dtype", lambda: setattr(y, "grad", torch.ones(2).double()))
attempt("grad of another shape", lambda: setattr(y, "grad", torch.ones(3)))
attempt("grad itself", lambda: setattr(y, "grad", y))
attempt("grad no tensor", lambda: setattr(y, "grad", 3))
z = torch.ones(2, requires_grad=True) * 1
attempt("non-leaf", lambda: setattr(z, "data", torch.zeros(2)) or z.tolist())
attempt("del", lambda: delattr(w, "data"))
