"""Programs that people write with complex numbers, each the same under PyTorch and backlight.

`t` is one of the two modules; what a program returns, and what it prints, is compared.
"""

import math
import warnings

import numpy as np
import pytest
import torch

import backlight
import backlight.nn
import backlight.optim


def spectral_loss(t):
    """A signal fitted by the magnitudes of its short-time spectra, at two resolutions."""
    time = t.arange(0, 256, dtype=t.float64) / 64
    target = t.sin(5.1 * time * time) + 0.5 * t.sin(71.3 * time)
    signal = (0.1 * t.cos(6.3 * time + time * time)).requires_grad_()  # a chirp: no bin of its spectra is 0
    optimizer = t.optim.Adam([signal], lr=0.05)
    lines = []
    for _ in range(5):
        loss = 0.0
        for size in (32, 64):
            window = t.hann_window(size, dtype=t.float64)
            spectra = [t.stft(one, size, size // 4, window=window, return_complex=True) for one in (signal, target)]
            sizes = [one.abs() for one in spectra]
            loss = (
                loss
                + (sizes[0] - sizes[1]).abs().mean()
                + (t.log(sizes[0] + 1e-3) - t.log(sizes[1] + 1e-3)).pow(2).mean()
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lines.append(f"{loss.item():.4f}")
    return lines, signal.detach()


def fourier_operator(t):
    """A layer of a Fourier neural operator: complex weights on the lowest modes, trained with Adam."""

    class SpectralConv1d(t.nn.Module):
        def __init__(self, channels, modes):
            super().__init__()
            self.modes = modes
            scale = 1 / (channels * channels)
            self.weight = t.nn.Parameter(scale * t.rand(channels, channels, modes, dtype=t.cfloat))

        def forward(self, x):
            spectrum = t.fft.rfft(x)
            out = t.zeros(*spectrum.shape, dtype=t.cfloat)
            out[:, :, : self.modes] = t.einsum("bix,iox->box", spectrum[:, :, : self.modes], self.weight)
            return t.fft.irfft(out, n=x.size(-1))

    t.manual_seed(0)
    layer, mix = SpectralConv1d(3, 5), t.nn.Conv1d(3, 3, 1)
    optimizer = t.optim.Adam([*layer.parameters(), *mix.parameters()], lr=0.01, weight_decay=1e-4)
    x = t.randn(4, 3, 16)
    target = x.roll(3, -1)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = t.nn.functional.mse_loss(t.relu(layer(x)) + mix(x), target)
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.5f}")
    return losses, str(layer), layer.weight.detach(), sum(p.numel() for p in layer.parameters())


def phase_vocoder(t):
    """A signal stretched in time: spectra interpolated, phases accumulated, and turned back into a signal."""
    size, hop, rate = 64, 16, 0.8
    window = t.hann_window(size, dtype=t.float64)
    signal = t.sin(t.arange(0, 512, dtype=t.float64) * 0.3) * t.linspace(0, 1, 512, dtype=t.float64)
    spectrum = t.stft(signal, size, hop, window=window, return_complex=True)
    steps = t.arange(0, spectrum.size(1) - 1, rate, dtype=t.float64)
    advance = t.linspace(0, math.pi * hop, spectrum.size(0), dtype=t.float64)[:, None]
    before, after = spectrum[:, steps.long()], spectrum[:, steps.long() + 1]
    change = after.angle() - before.angle() - advance
    change = change - 2 * math.pi * t.round(change / (2 * math.pi)) + advance
    phase = t.cumsum(t.cat([spectrum[:, :1].angle(), change[:, :-1]], 1), 1)
    share = steps % 1
    sizes = (1 - share) * before.abs() + share * after.abs()
    return t.istft(t.polar(sizes, phase), size, hop, window=window), sizes


def complex_network(t):
    """A complex linear layer with modReLU, its weights complex parameters, trained by SGD."""

    class ModReLU(t.nn.Module):
        def __init__(self, features):
            super().__init__()
            self.bias = t.nn.Parameter(t.zeros(features) - 0.05)

        def forward(self, z):
            size = z.abs()
            return t.relu(size + self.bias) * z / (size + 1e-6)

    t.manual_seed(1)
    first, second = t.nn.Linear(3, 5, dtype=t.cfloat), t.nn.Linear(5, 1, dtype=t.cfloat)
    model = t.nn.Sequential(first, ModReLU(5), second)
    z = t.randn(8, 3, dtype=t.cfloat)
    target = (z * t.tensor([1j, 2, -1 + 1j])).sum(1, keepdim=True)
    optimizer = t.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = (model(z) - target).abs().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.5f}")
    state = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    return losses, state, first.weight.grad, [str(p.dtype) for p in model.parameters()]


def unitary_optimisation(t):
    """A unitary matrix found by gradient descent over Hermitian generators: U = exp(−iH), as for a quantum gate."""
    gate = t.tensor([[1, 1], [1, -1]], dtype=t.complex128) / math.sqrt(2)
    parameters = t.tensor([0.3, -0.2, 0.5, 0.1], dtype=t.float64, requires_grad=True)
    pauli = t.tensor([[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]], dtype=t.complex128)
    optimizer = t.optim.Adam([parameters], lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        unitary = t.linalg.matrix_exp(-1j * t.einsum("k,kij->ij", parameters.to(t.complex128), pauli))
        infidelity = 1 - t.trace(gate.mH @ unitary).abs().square() / 4
        infidelity.backward()
        optimizer.step()
    identity = unitary.mH @ unitary
    values = t.linalg.eigvalsh(t.einsum("k,kij->ij", parameters.to(t.complex128), pauli)).detach()
    return f"{infidelity.item():.8f}", parameters.detach(), identity.detach(), values


def roots_and_filters(t):
    """Roots of a polynomial by its companion matrix; a Wiener filter; a channel's least squares."""
    companion = t.tensor([[0.0, 0, 0, -24], [1, 0, 0, 50], [0, 1, 0, -35], [0, 0, 1, 10]], dtype=t.float64)
    roots = sorted(t.linalg.eigvals(companion).real.tolist())
    t.manual_seed(2)
    pilot = t.randn(6, 2, dtype=t.cdouble)
    channel = t.tensor([[1 + 1j], [0.5 - 2j]], dtype=t.cdouble)
    received = pilot @ channel
    estimate = t.linalg.solve(pilot.mH @ pilot, pilot.mH @ received)
    spectrum = t.fft.fft(t.tensor([1.0, 2, 3, 4], dtype=t.float64))
    filtered = t.fft.ifft(spectrum * spectrum.conj() / (spectrum.abs() ** 2 + 0.5))
    return [f"{root:.6f}" for root in roots], estimate, filtered, f"{filtered[0]:.4f}"


def printed(t):
    """What a script prints of complex tensors, parameters, modules and errors."""
    z = t.tensor([[1 + 2j, -3.5], [0.25j, 1e4]], requires_grad=True)
    lines = [str(z), str(z.abs()), str(z.conj().sum()), str(t.nn.Parameter(z.detach())), str(z.dtype)]
    try:
        (z * 1j).sum().backward()
    except RuntimeError as problem:
        lines.append(str(problem).split(";")[0])
    return lines


PROGRAMS = [
    spectral_loss,
    fourier_operator,
    phase_vocoder,
    complex_network,
    unitary_optimisation,
    roots_and_filters,
    printed,
]


def compared(ours, theirs) -> None:
    if isinstance(theirs, torch.Tensor):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.numpy(), theirs.resolve_conj().numpy(), rtol=2e-4, atol=2e-5)
    elif isinstance(theirs, (tuple, list)) and any(isinstance(one, torch.Tensor) for one in theirs):
        for one, other in zip(ours, theirs):
            compared(one, other)
    else:
        assert ours == theirs


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_program_gives_what_it_gives_under_pytorch(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared(program(backlight), program(torch))
