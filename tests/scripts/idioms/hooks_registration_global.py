"""Global hooks on the registration of parameters, buffers and modules."""

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

torch.manual_seed(0)
log = []
handles = [
    register_module_parameter_registration_hook(lambda m, name, p: log.append(("parameter", type(m).__name__, name))),
    register_module_buffer_registration_hook(lambda m, name, b: log.append(("buffer", type(m).__name__, name))),
    register_module_module_registration_hook(lambda m, name, s: log.append(("module", type(m).__name__, name))),
]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        self.register_buffer("mean", torch.zeros(1))
        self.add_module("act", nn.ReLU())
        self.extra = nn.Parameter(torch.zeros(1))
        self.register_parameter("none", None)


Net()
print(*log, sep="\n")
for handle in handles:
    handle.remove()
log.clear()
handle = register_module_parameter_registration_hook(lambda m, name, p: nn.Parameter(p.detach() * 0 + 5))
print(nn.Linear(2, 1).weight.tolist())
handle.remove()
handle = register_module_module_registration_hook(lambda m, name, s: nn.Identity() if isinstance(s, nn.Dropout) else s)
print(nn.Sequential(nn.Dropout(), nn.ReLU()))
handle.remove()
handle = register_module_buffer_registration_hook(lambda m, name, b: b.double() if b.is_floating_point() else b)
print(nn.BatchNorm1d(1).running_mean.dtype)
handle.remove()
