"""`nn.DataParallel` where there is no GPU: the module, under `.module`."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.DataParallel(nn.Linear(2, 2))
print(model)
print(list(model.state_dict()), isinstance(model, nn.DataParallel), model.device_ids)
x = torch.ones(3, 2)
print(torch.equal(model(x), model.module(x)))
inner = model.module if hasattr(model, "module") else model
print(
    inner.weight.shape,
    next(model.parameters()).device,
    model.output_device if hasattr(model, "output_device") else None,
)
