import torch
import torch.nn as nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 6))
opt = torch.optim.Adam(policy.parameters(), lr=0.01)
boards = torch.randn(64, 4)
legal = torch.rand(64, 6) > 0.3
legal[:, 0] = True
best = torch.where(legal[:, 3], 3, 0)


def entropy(p):
    logs = torch.log(p)  # here
    return -torch.where(p > 0, p * logs, torch.zeros_like(p)).sum(1)  # here


for step in range(100):
    logits = policy(boards).masked_fill(~legal, float("-inf"))
    probs = torch.softmax(logits, dim=1)
    nll = nn.functional.cross_entropy(logits, best)
    loss = nll - 0.01 * entropy(probs).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(step, loss.item())
print("final", loss.item())
