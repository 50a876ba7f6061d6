"""The gradient of a value that was broadcast is the sum over the places that it went to."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
shifted = offset + pair
shifted.backward(torch.tensor([1.0, 1.0]))

print("of the offset:", offset.grad)
print("of the pair:", pair.grad)
