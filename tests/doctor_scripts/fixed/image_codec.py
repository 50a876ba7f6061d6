import torch
import torch.nn as nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 6))
decoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 16))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
images = torch.randn(64, 4) @ torch.randn(4, 16)

for step in range(60):
    code = encoder(images)
    code = code + (torch.round(code * 4) / 4 - code).detach()
    loss = nn.functional.mse_loss(decoder(code), images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("reconstruction", loss.item())
