"""A hook doubles the gradient of a leaf."""

import torch

watched = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
handle = watched.register_hook(lambda slope: slope * 2)
watched.backward(torch.tensor([1.0, 2.0, 3.0]))
print(watched.grad)
handle.remove()
