"""`backlight.fft`: values and errors as PyTorch's (opinfo_passing.txt has its samples); no complex results."""

import pytest
from parity import assert_same, lines

import backlight

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
    """
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_fft_is_pytorchs(expression):
    assert_same(expression.strip())


@pytest.mark.parametrize("name", ["fft", "ifft2", "rfft", "rfftn", "ihfft"])
def test_complex_results_are_refused_in_one_way(name):
    with pytest.raises(TypeError, match=rf"complex dtypes are not in backlight, got fft\.{name}, whose result"):
        getattr(backlight.fft, name)(backlight.ones(4, 4))


@pytest.mark.parametrize("name", ["complex", "polar", "view_as_complex", "stft"])
def test_complex_constructors_are_refused_in_one_way(name):
    with pytest.raises(TypeError, match=f"complex dtypes are not in backlight, got {name}"):
        getattr(backlight, name)(backlight.ones(4, 2), backlight.ones(4, 2))
