"""The graph of linear layers, as PyTorch's tutorials go through it, and the order in which gradients arrive."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
loss = nn.MSELoss()(net(torch.randn(5, 4)), torch.zeros(5, 2))
print(loss.grad_fn.name())
print(loss.grad_fn.next_functions[0][0].name())
print(loss.grad_fn.next_functions[0][0].next_functions[0][0].name())
node = loss.grad_fn
while node is not None and node.next_functions:
    print(node.name(), len(node.next_functions), [one is None for one, _ in node.next_functions])
    node = node.next_functions[1 if node.name() == "AddmmBackward0" else 0][0]
bias = loss.grad_fn.next_functions[0][0].next_functions[0][0].variable
print(bias is net[2].bias)
arrived = []
for name, param in net.named_parameters():
    param.register_hook(lambda grad, name=name: arrived.append(name))
    param.register_post_accumulate_grad_hook(lambda param, name=name: arrived.append(f"{name} done"))
loss.backward()
print(arrived)
