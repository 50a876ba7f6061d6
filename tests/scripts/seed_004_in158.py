"""Variable, the old name of a tensor that may require grad, and two results that share a graph."""

import torch
from torch.autograd import Variable

torch.manual_seed(4)
start = Variable(torch.rand(1, 4), requires_grad=True)
square = start**2
twice = square * 2
mean = twice.mean()
total = twice.sum()
print(mean)
print(total)
