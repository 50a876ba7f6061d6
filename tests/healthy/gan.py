"""Two networks with an optimizer each: the generator's loss leaves gradients in the discriminator, too."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2))
discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
make = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.99))
judge = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.99))
ones, zeros, numbers = torch.ones(8, 1), torch.zeros(8, 1), []
for _ in range(6):
    real, fake = torch.randn(8, 2) + 3, generator(torch.randn(8, 2))
    judge.zero_grad()
    loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    loss = loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
    loss.backward()
    judge.step()
    make.zero_grad()
    fooled = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
    fooled.backward()
    make.step()
    numbers += [loss.item(), fooled.item()]
