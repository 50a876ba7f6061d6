"""A write to a detached twin of a leaf shows in the leaf."""

import torch

watched = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
handle = watched.register_hook(lambda slope: slope * 2)
watched.backward(torch.tensor([1.0, 2.0, 3.0]))
handle.remove()

print(f"at first: {watched}")
twin = watched.detach()
twin[0] = 5
print(f"the twin: {twin}")
print(f"the leaf: {watched}")
