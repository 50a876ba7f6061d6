"""A mean is a scalar, so backward needs no gradient."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
result = offset + pair
result = result.mean()
result.backward()
print(result)
