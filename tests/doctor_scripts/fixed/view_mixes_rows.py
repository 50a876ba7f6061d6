import torch
import torch.nn as nn

torch.manual_seed(31)
T, B, F = 12, 300, 2
kind = torch.randint(0, 2, (B,))
t = torch.arange(T).float()
wave = torch.sin(t[:, None] * (0.4 + 0.5 * kind))
series = torch.stack([wave, wave.roll(1, 0)], dim=2) + 0.3 * torch.randn(T, B, F)

lstm = nn.GRU(F, 8)
head = nn.Sequential(nn.Linear(T * 8, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=5e-3)
for epoch in range(60):
    out, _ = lstm(series)
    flat = out.transpose(0, 1).reshape(B, -1)
    loss = nn.functional.cross_entropy(head(flat), kind)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 20 == 0 or epoch == 59:
        acc = (head(flat).argmax(1) == kind).float().mean().item()
        print(epoch, loss.item(), acc)
