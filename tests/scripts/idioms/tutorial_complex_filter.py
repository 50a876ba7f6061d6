"""Complex parameters: a filter in the frequency domain learned by gradients, and Wirtinger's convention."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Filter(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        self.response = nn.Parameter(torch.ones(length // 2 + 1, dtype=torch.complex128))

    def forward(self, signal):
        return torch.fft.irfft(torch.fft.rfft(signal) * self.response, n=signal.shape[-1])


times = torch.linspace(0, 1, 33)[:-1]
low, high = torch.sin(2 * torch.pi * 2 * times), torch.sin(2 * torch.pi * 9 * times)
model = Filter(32)
optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.5)
for step in range(8):
    optimizer.zero_grad()
    loss = (model(low + 0.5 * high) - low).square().mean()
    loss.backward()
    optimizer.step()
    if step % 2:
        print(f"{step}: {loss.item():.5f}")
gains = model.response.detach().abs()
print(f"{gains[2]:.3f} {gains[9]:.3f}", model.response.grad.dtype)
z = torch.tensor([1 + 2j, -0.5j], requires_grad=True)
(z.conj() * z).real.sum().backward()
print(torch.allclose(z.grad, 2 * z.detach()), torch.autograd.gradcheck(lambda z: (z * z).imag, z))
print(
    torch.view_as_real(z.detach()).tolist(), torch.stft(low, 8, window=torch.hann_window(8), return_complex=True).shape
)
