"""`torch.jit.trace` of a model computes what the model computes."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).eval()
x = torch.ones(2, 3)
traced = torch.jit.trace(model, x)
print(torch.allclose(traced(x), model(x)), torch._C._get_tracing_state() is None)
with torch.jit.optimized_execution(False):
    print(traced(x).shape)
frozen = torch.jit.freeze(torch.jit.script(model))
print(frozen(x).shape)
function = torch.jit.trace(lambda a: a * 2, torch.ones(1))
print(function(torch.tensor([4.0])))
print(torch.jit.wait(torch.jit.fork(lambda a: a + 1, torch.ones(1))))
