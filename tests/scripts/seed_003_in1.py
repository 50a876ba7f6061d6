"""PyTorch's name can be imported."""

import torch

print(torch.__name__)
