"""A small model learns the softened answers of a large one, which runs under no_grad."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
teacher, student = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
x, numbers = torch.randn(20, 4), []
for _ in range(6):
    with torch.no_grad():
        wanted = F.softmax(teacher(x) / 2, dim=1)
    guess = student(x)
    soft = F.kl_div(F.log_softmax(guess / 2, dim=1), wanted, reduction="batchmean")
    hard = F.cross_entropy(guess, wanted)
    optimizer.zero_grad()
    (soft + hard).backward()
    optimizer.step()
    numbers += [soft.item(), hard.item()]
