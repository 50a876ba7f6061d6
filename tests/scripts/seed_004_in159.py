"""A second backward through a graph that was freed is an error with PyTorch's words."""

import torch
from torch.autograd import Variable

start = Variable(torch.rand(1, 4), requires_grad=True)
square = start**2
twice = square * 2
mean = twice.mean()
total = twice.sum()

mean.backward()
try:
    total.backward()
except RuntimeError as problem:
    print(str(problem).splitlines()[0])
