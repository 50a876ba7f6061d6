"""TorchScript's decorators around eager code."""

import torch
from torch import nn


@torch.jit.script
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


class Net(nn.Module):
    __constants__ = ["width"]
    sizes: list[int]

    def __init__(self):
        super().__init__()
        self.width = torch.jit.Attribute(3, int) if False else 3

    @torch.jit.ignore
    def helper(self, x):
        return x + 1

    @torch.jit.unused
    def rare(self, x):
        return x - 1

    @torch.jit.export
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3

    def forward(self, x):
        if not torch.jit.is_scripting() and not torch.jit.is_tracing():
            x = self.helper(x)
        return self.other(x) + self.rare(x)


@torch.jit.ignore(drop=True)
def dropped(x):
    return x


net = Net()
print(halved(torch.tensor(3.0)).item(), net(torch.tensor(2.0)).item(), dropped(3))
scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
print(scripted(torch.zeros(1, 2)).shape, isinstance(scripted, nn.Module))
print(isinstance(net, torch.jit.ScriptModule), torch.jit.isinstance([1], list[int]))
print(torch.jit.annotate(list[int], [1, 2]), torch.jit.is_scripting(), torch.jit.is_tracing())
future_like: torch.jit.Final[int] = 3
x: tuple[int, int] | None = None
print(future_like, x)
