# DCGAN-like toy: generate short waves
import torch
import torch.nn as nn

NZ = 6
LEN = 32
BATCH = 64
STEPS = 20


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(NZ, 16 * 8)
        self.up = nn.Sequential(
            nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose1d(8, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 16, 8))


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 8, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv1d(8, 16, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(16 * 8, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def weights_init(m):
    if isinstance(m, (nn.Conv1d, nn.ConvTranspose1d, nn.Linear)):
        nn.init.normal_(m.weight, 0.0, 0.1)
        nn.init.zeros_(m.bias)


def real_waves(n):
    t = torch.linspace(0, 1, LEN)
    phase = 6.28 * torch.rand(n, 1)
    return 0.8 * torch.sin(6.28 * 2 * t + phase).unsqueeze(1)


def d_step(netD, optD, criterion, real, fake):
    optD.zero_grad()
    out_real = netD(real)
    out_fake = netD(fake.detach())
    loss = criterion(out_real, torch.ones_like(out_real)) + criterion(out_fake, torch.zeros_like(out_fake))
    loss.backward()
    optD.step()
    return loss.item()


def g_step(netD, optG, criterion, fake):
    optG.zero_grad()
    out = netD(fake)
    loss = criterion(out, torch.ones_like(out))
    loss.backward()
    optG.step()
    return loss.item()


def main():
    torch.manual_seed(1)
    netG, netD = G(), D()
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCEWithLogitsLoss()
    optG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
    for i in range(STEPS):
        fake = netG(torch.randn(BATCH, NZ))
        lossD = d_step(netD, optD, criterion, real_waves(BATCH), fake)
        lossG = g_step(netD, optG, criterion, fake)
        if i % 50 == 0 or i == STEPS - 1:
            print("[%d/%d] D %.3f G %.3f" % (i, STEPS, lossD, lossG))
    with torch.no_grad():
        print("std of fakes", netG(torch.randn(200, NZ)).std().item())


if __name__ == "__main__":
    main()
