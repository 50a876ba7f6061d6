"""`with torch.device(...)` and the default device."""

import torch
from torch import nn

with torch.device("cpu"):
    print(torch.ones(2).device, nn.Linear(1, 1).weight.device, torch.get_default_device())
torch.set_default_device("cpu")
print(torch.get_default_device(), torch.zeros(1).device, torch.arange(3).device)
torch.set_default_device(None)
print(torch.get_default_device())


print(torch.ones(1, device=torch.device("cpu", 0)).device, torch.ones(1).to("cpu").device, torch.tensor(1).get_device())
