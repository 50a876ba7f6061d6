import torch
import torch.nn as nn

torch.manual_seed(0)
genres = torch.randn(6, 16)


def draw(n):
    pos = torch.randint(0, 6, (n,))
    neg = (pos + torch.randint(1, 6, (n,))) % 6
    songs = [genres[g] + 0.5 * torch.randn(n, 16) for g in (pos, pos, neg)]
    return songs


encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
criterion = nn.TripletMarginLoss(margin=1.0)
opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)

for step in range(101):
    anchor, positive, negative = draw(64)
    za, zp, zn = encoder(anchor), encoder(positive), encoder(negative)
    loss = criterion(za, zp, zn)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        d_pos = (za - zp).norm(dim=1)
        d_neg = (za - zn).norm(dim=1)
        print(step, f"loss {loss.item():.3f}", f"ranked right {(d_pos < d_neg).float().mean().item():.2f}")
