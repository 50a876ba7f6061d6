import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.encoder = nn.Linear(dim, hidden)
        self.decoder = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


torch.manual_seed(0)
clean = torch.randn(64, 6) @ torch.randn(6, 12)
noisy = clean + 0.1 * torch.randn_like(clean)
net = Denoiser(12, 6)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for i in range(30):
    loss = ((net(noisy) - clean) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
