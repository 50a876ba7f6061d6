import math
import torch
import torch.nn as nn

torch.manual_seed(0)
t = torch.arange(128) / 128
clean = torch.sin(2 * math.pi * 5 * t[None] + 6.28 * torch.rand(60, 1))
noisy = clean + 0.5 * torch.randn(60, 128)


class SpectralFilter(nn.Module):
    def __init__(self, bins=65):
        super().__init__()
        self.log_gain = nn.Parameter(torch.zeros(bins))

    def forward(self, wave):
        spec = torch.fft.rfft(wave) * torch.sigmoid(self.log_gain)
        return torch.fft.irfft(spec, n=wave.size(-1))


model = SpectralFilter()
opt = torch.optim.Adam(model.parameters(), lr=0.1)
for i in range(100):
    loss = (model(noisy) - clean).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 25 == 0:
        print(i, loss.item())
print("final", loss.item(), "noise power", (noisy - clean).pow(2).mean().item())
