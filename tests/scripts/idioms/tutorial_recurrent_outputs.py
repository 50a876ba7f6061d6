"""What recurrent layers' outputs print, as in PyTorch's tutorial on sequence models, and gradients through them."""

import torch
from torch import nn

torch.manual_seed(1)
lstm = nn.LSTM(3, 3)
inputs = [torch.randn(1, 3) for _ in range(5)]
hidden = (torch.randn(1, 1, 3), torch.randn(1, 1, 3))
for i in inputs:
    out, hidden = lstm(i.view(1, 1, -1), hidden)
out, hidden = lstm(torch.cat(inputs).view(len(inputs), 1, -1), (torch.randn(1, 1, 3), torch.randn(1, 1, 3)))
print(out)
print(hidden)
for make, options in (
    (nn.LSTM, {}),
    (nn.LSTM, {"bidirectional": True}),
    (nn.LSTM, {"batch_first": True}),
    (nn.LSTM, {"num_layers": 2, "dtype": torch.float64}),
    (nn.LSTM, {"batch_first": True, "dtype": torch.float64}),
    (nn.GRU, {}),
    (nn.GRU, {"batch_first": True, "bidirectional": True}),
    (nn.RNN, {"batch_first": True, "nonlinearity": "relu"}),
):
    layer = make(2, 2, **options)
    x = torch.randn(3, 4, 2, dtype=layer.weight_ih_l0.dtype, requires_grad=True)
    out, last = layer(x)
    out.square().sum().backward()
    print(make.__name__, options, out.grad_fn.name(), round(x.grad.norm().item(), 4), out[0, 0])
    print(layer(x[:, 0])[0].grad_fn.name())
with torch.no_grad():
    print(nn.GRU(2, 2)(torch.randn(1, 1, 2))[0])
print(nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(torch.randn(2, 4), torch.tensor([0, 4])))
