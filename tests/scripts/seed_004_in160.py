"""retain_graph keeps a graph that two losses share, for both of them."""

import torch
from torch.autograd import Variable

torch.manual_seed(5)
start = Variable(torch.rand(1, 4), requires_grad=True)
square = start**2
twice = square * 2
mean = twice.mean()
total = twice.sum()

mean.backward(retain_graph=True)
total.backward(retain_graph=True)
print(start.grad)
