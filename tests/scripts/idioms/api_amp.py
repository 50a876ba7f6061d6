"""Mixed precision code on a machine without a GPU."""

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
use_amp = torch.cuda.is_available()
scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
for _ in range(2):
    with torch.amp.autocast(device_type="cuda" if use_amp else "cpu", dtype=torch.bfloat16, enabled=use_amp):
        loss = model(torch.ones(4, 2)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
print(round(loss.item(), 5), scaler.get_scale(), scaler.is_enabled(), scaler.state_dict())
print(torch.GradScaler is torch.amp.GradScaler, torch.autocast is torch.amp.autocast)
old = torch.cuda.amp.GradScaler(enabled=False)
with torch.cuda.amp.autocast(enabled=False):
    print(old.scale(torch.ones(1)))
live = torch.GradScaler("cpu", init_scale=8.0)
print(live.scale(torch.ones(1)), live.get_growth_factor(), live.get_backoff_factor(), live.get_growth_interval())
print(torch.amp.is_autocast_available("cpu"), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
