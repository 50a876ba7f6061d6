"""A view that is made in inference mode of a tensor that requires grad must not be written to outside."""

import torch
from said import attempt

leaf = torch.ones(3, requires_grad=True)
base = leaf * 1
plain = torch.ones(3)
with torch.inference_mode():
    view, leaf_view, parts = base[:2], leaf[:2], base.unbind()
    plain_view, made = plain[:2], torch.ones(2)
    attempt("written inside", lambda: base[1:].mul_(1).tolist())
    print(view.is_inference(), made.is_inference(), made[:1].is_inference(), plain_view.is_inference())
attempt("a view", lambda: view.mul_(2))
attempt("a view of a leaf", lambda: leaf_view.mul_(2))
attempt("one of several views", lambda: parts[0].mul_(2))
attempt("a view of a tensor without gradients", lambda: plain_view.mul_(2).tolist())
attempt("a tensor made inside", lambda: made.mul_(2))
attempt("a view of it", lambda: made[:1].mul_(2))
attempt("the base", lambda: base.mul_(2).tolist())

with torch.inference_mode():
    fresh = (torch.ones(3, requires_grad=True) * 1)[:2]
    again = fresh[:1]
    doubled = fresh * 2
for each in (fresh, again, doubled, leaf_view, plain_view, fresh.detach()):
    print(each.requires_grad, each.is_leaf, each.grad_fn)
print((fresh * 2).requires_grad, fresh)
attempt("to NumPy", lambda: fresh.numpy())
