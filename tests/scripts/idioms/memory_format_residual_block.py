"""A residual block trained in channels_last: the strides of activations and gradients, and the loss of each step."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=2)
        self.groups = nn.GroupNorm(2, channels)

    def forward(self, x):
        out = F.relu(self.norm(self.first(x)), inplace=True)
        return F.relu(self.groups(self.second(out)) + x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.block = Block(8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        x = F.max_pool2d(self.block(self.stem(x)), 2)
        x = F.interpolate(F.pad(self.up(x), (1, 1, 1, 1)), scale_factor=2, mode="nearest")
        return self.head(torch.flatten(F.adaptive_avg_pool2d(F.dropout(x, 0.0), 1), 1))


model = Net().to(memory_format=torch.channels_last)
for name, module in model.named_modules():
    if name:
        module.register_forward_hook(
            lambda _module, _inputs, out, name=name: print(f"  {name}: {tuple(out.shape)} {tuple(out.stride())}")
        )
images = torch.randn(4, 3, 16, 16).contiguous(memory_format=torch.channels_last)
labels = torch.tensor([0, 1, 2, 3])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
for name, parameter in model.named_parameters():
    if parameter.dim() == 4:
        state = optimizer.state[parameter]["momentum_buffer"]
        print(name, parameter.stride(), parameter.grad.stride(), state.stride())
