"""The old constructors make tensors of their dtype, which can be told to require grad afterwards."""

import torch

wide = torch.DoubleTensor([1.0, 2.0])
wide.requires_grad = True
print(f"wide: {wide}")

narrow = torch.HalfTensor([1.0, 2.0])
narrow.requires_grad = True
print(f"narrow: {narrow}")
