"""`backlight.fft`: values and errors as PyTorch's (opinfo_passing.txt has its samples); their spectra too."""

import pytest
from parity import assert_same, lines

EXPRESSIONS = lines(
    """
    torch.fft.irfft(torch.arange(6.).reshape(2, 3), n=0)
    torch.fft.irfft(torch.ones(2, 1))
    torch.fft.irfft(torch.ones(2, 3), norm='foo')
    torch.fft.irfft(torch.ones(2, 3), dim=4)
    torch.fft.irfftn(torch.ones(2, 3), dim=(0, 0))
    torch.fft.irfftn(torch.ones(2, 3), s=(2, 2), dim=(0,))
    torch.fft.irfftn(torch.ones(2, 3), s=(2, 2, 2))
    torch.fft.irfftn(torch.ones(2, 3), dim=())
    torch.fft.irfft(torch.ones(3, dtype=torch.float16))
    torch.fft.irfft(torch.tensor(1.))
    torch.fft.irfft(torch.tensor([1, 2, 3])).dtype
    torch.fft.irfft(torch.ones(3, dtype=torch.float32)).dtype
    torch.fft.fftshift(torch.arange(5))
    torch.fft.ifftshift(torch.arange(5))
    torch.fft.fftshift(torch.arange(6).reshape(2, 3), dim=1)
    torch.fft.fftshift(torch.arange(5), dim=3)
    torch.fft.fftfreq(5)
    torch.fft.fftfreq(4, d=0.5, dtype=torch.float64)
    torch.fft.rfftfreq(5, 2.0, requires_grad=True)
    torch.imag(torch.ones(2))
    torch.view_as_real(torch.ones(2))
    torch.fft.irfft(torch.ones(3, requires_grad=True)).grad_fn.name()
    torch.fft.fft(torch.tensor([1., 2, 3, 4])), torch.fft.rfft(torch.tensor([1., 2, 3, 4]))
    torch.fft.fft(torch.ones(4, 4), n=0)
    torch.fft.fft(torch.ones(4, 4), norm='foo')
    torch.fft.fft2(torch.ones(4))
    torch.fft.fftn(torch.ones(2, 3), dim=(0, 0))
    torch.fft.fftn(torch.ones(2, 3), s=(2, 2), dim=(0,))
    torch.fft.fft(torch.ones(3, dtype=torch.float16))
    torch.fft.fft(torch.tensor([1, 2, 3])).dtype, torch.fft.fft(torch.ones(3).double()).dtype
    torch.fft.rfft(torch.ones(3, dtype=torch.cfloat))
    torch.fft.rfft2(torch.ones(3, 3, dtype=torch.cfloat))
    torch.fft.ihfft(torch.ones(3, dtype=torch.cfloat))
    torch.fft.ihfftn(torch.ones(3, dtype=torch.cfloat))
    torch.fft.rfftn(torch.ones(2, 3), dim=())
    torch.fft.fft(torch.ones(3, requires_grad=True)).grad_fn.name()
    torch.stft(torch.ones(20), 8)
    torch.stft(torch.ones(20), 8, hop_length=0, window=torch.ones(8), return_complex=True)
    torch.stft(torch.ones(20), 30, window=torch.ones(30), return_complex=True, center=False)
    torch.stft(torch.ones(20), 8, win_length=4, window=torch.ones(8), return_complex=True)
    torch.stft(torch.ones(20, dtype=torch.cfloat), 8, window=torch.ones(8), onesided=True)
    torch.stft(torch.ones(20), 8, window=torch.ones(8), return_complex=True, align_to_window=True)
    torch.istft(torch.ones(5, 11), 8)
    torch.istft(torch.ones(5, 11, dtype=torch.cfloat), 10, window=torch.ones(10))
    torch.istft(torch.ones(5, 11, dtype=torch.cfloat), 8, hop_length=9, window=torch.ones(8))
    """
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_fft_is_pytorchs(expression):
    assert_same(expression.strip())
