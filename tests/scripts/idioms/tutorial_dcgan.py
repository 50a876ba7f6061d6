"""A small DCGAN: weights drawn by `apply`, two optimizers, real and fake batches."""

import torch
from torch import nn

torch.manual_seed(999)
torch.set_default_dtype(torch.float64)


def weights_init(module: nn.Module) -> None:
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


generator = nn.Sequential(
    nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    nn.Conv2d(1, 8, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(8, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
)
generator.apply(weights_init)
discriminator.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = torch.randn(4, 6, 1, 1)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
real = torch.ones(8, 1, 8, 8) * torch.linspace(-1, 1, 8)
for step in range(4):
    discriminator.zero_grad()
    label = torch.full((8,), 1.0)
    error_real = criterion(discriminator(real).view(-1), label)
    error_real.backward()
    fake = generator(torch.randn(8, 6, 1, 1))
    label.fill_(0.0)
    error_fake = criterion(discriminator(fake.detach()).view(-1), label)
    error_fake.backward()
    optimizer_d.step()
    generator.zero_grad()
    label.fill_(1.0)
    error_g = criterion(discriminator(fake).view(-1), label)
    error_g.backward()
    optimizer_g.step()
    print(f"[{step}] D {error_real.item() + error_fake.item():.3f} G {error_g.item():.3f}")
with torch.no_grad():
    print(generator(fixed_noise).detach().cpu().shape)
