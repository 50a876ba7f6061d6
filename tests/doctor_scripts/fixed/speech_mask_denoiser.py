"""Denoise synthetic speech-like signals by masking the spectrogram."""

import math

import torch
from torch import nn


def utterances(n, samples=1024):
    t = torch.arange(samples) / 8000
    f0 = 120 + 80 * torch.rand(n, 1)
    clean = sum(torch.sin(2 * math.pi * f0 * k * t) / k for k in (1, 2, 3, 5))
    envelope = torch.sin(math.pi * t / t[-1]) ** 2
    clean = clean * envelope
    return clean, clean + 0.5 * torch.randn_like(clean)


class Spectrum:
    def __init__(self, n_fft=128, hop=64):
        self.n_fft, self.hop, self.window = n_fft, hop, torch.hann_window(n_fft)

    def forward(self, x):
        return torch.stft(x, self.n_fft, self.hop, window=self.window, return_complex=True)

    def inverse(self, s, length):
        return torch.istft(s, self.n_fft, self.hop, window=self.window, length=length)


class MaskNet(nn.Module):
    def __init__(self, bins, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(bins, hidden, 3, padding=1)
        self.mid = nn.Conv1d(hidden, hidden, 3, padding=2, dilation=2)
        self.out = nn.Conv1d(hidden, bins, 1)

    def forward(self, magnitude):
        x = torch.log1p(magnitude)
        h = torch.relu(self.conv(x))
        h = h + torch.relu(self.mid(h))
        mask = torch.sigmoid(self.out(h))
        energy = x / (x.amax(dim=1, keepdim=True) + 1e-6)
        mask = mask * (0.5 + 0.5 * energy)
        return mask


def si_snr(est, ref):
    ref = ref - ref.mean(-1, keepdim=True)
    est = est - est.mean(-1, keepdim=True)
    scale = (est * ref).sum(-1, keepdim=True) / ref.pow(2).sum(-1, keepdim=True)
    target = scale * ref
    noise = est - target
    return 10 * torch.log10(target.pow(2).sum(-1) / (noise.pow(2).sum(-1) + 1e-8))


def denoise(net, spectrum, noisy):
    spec = spectrum.forward(noisy)
    return spectrum.inverse(spec * net(spec.abs()), noisy.shape[-1])


def train(net, spectrum, clean, noisy, epochs, batch):
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        net.train()
        losses = []
        for idx in torch.randperm(len(clean)).split(batch):
            loss = -si_snr(denoise(net, spectrum, noisy[idx]), clean[idx]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} negative si-snr {sum(losses) / len(losses):.3f}")


def main():
    torch.manual_seed(9)
    clean, noisy = utterances(120)
    spectrum = Spectrum()
    net = MaskNet(bins=65)
    train(net, spectrum, clean[:96], noisy[:96], epochs=8, batch=16)
    net.eval()
    with torch.no_grad():
        after = si_snr(denoise(net, spectrum, noisy[96:]), clean[96:]).mean()
    print("before %.2f dB after %.2f dB" % (si_snr(noisy[96:], clean[96:]).mean(), after))


if __name__ == "__main__":
    main()
