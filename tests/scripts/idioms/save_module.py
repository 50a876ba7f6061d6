"""A whole module is saved, refused by default, and loaded when asked for."""

import io
import pickle

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, 1)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        return self.layer(x) * self.scale


torch.manual_seed(0)
net = Net(3)
file = io.BytesIO()
torch.save(net, file)
file.seek(0)
try:
    torch.load(file)
except pickle.UnpicklingError as problem:
    print("refused", "Weights only load failed" in str(problem))
file.seek(0)
again = torch.load(file, weights_only=False)
x = torch.ones(2, 3)
print(type(again) is Net, again.width, torch.equal(again(x), net(x)), again.layer.weight.requires_grad)
