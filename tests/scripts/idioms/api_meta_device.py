"""Models made on the meta device: shapes without memory."""

import torch
from torch import nn

with torch.device("meta"):
    model = nn.Sequential(nn.Linear(100, 200), nn.BatchNorm1d(200), nn.Embedding(10, 4), nn.LSTM(3, 4))
    x = torch.empty(3, 4)
print({str(p.device) for p in model.parameters()}, sum(p.numel() for p in model.parameters()), x.device, x.shape)
print(model[0].weight.is_meta, model[0].weight.shape, model[0].weight)
layer = nn.Linear(2, 3, device="meta")
print(layer.weight.device, layer.weight.dtype, torch.empty(2, device="meta").is_meta)
layer = layer.to_empty(device="cpu")
nn.init.ones_(layer.weight)
nn.init.zeros_(layer.bias)
print(layer(torch.ones(1, 2)).tolist())
with torch.device("meta"):
    small = nn.Linear(2, 1)
print(
    small.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, assign=True),
    small(torch.ones(1, 2)).tolist(),
)
skipped = torch.nn.utils.skip_init(nn.Linear, 2, 3)
print(skipped.weight.shape, skipped.weight.device)
try:
    nn.Linear(2, 2, device="meta").to("cpu")
except NotImplementedError as problem:
    print(str(problem)[:40])
