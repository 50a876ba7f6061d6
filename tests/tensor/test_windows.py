"""Windows for spectra equal PyTorch's, in each dtype and with its errors."""

import numpy as np
import pytest
import torch

import backlight

NAMES = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
TOLERANCE = {"float64": 1e-14, "float32": 4e-6, "float16": 3e-3, "bfloat16": 3e-2}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_windows_equal_pytorchs(name, dtype):
    for length in (0, 1, 2, 3, 8, 33):
        for periodic in (True, False):
            ours = getattr(backlight, name)(length, periodic, dtype=getattr(backlight, dtype))
            theirs = getattr(torch, name)(length, periodic, dtype=getattr(torch, dtype))
            assert str(ours.dtype) == str(theirs.dtype)
            np.testing.assert_allclose(ours.double().numpy(), theirs.double().numpy(), rtol=0, atol=TOLERANCE[dtype])


def test_windows_take_their_shape_as_numbers():
    for module in (backlight, torch):
        assert module.hamming_window(4, False, 0.5, 0.5, dtype=module.float64).tolist() == pytest.approx(
            [0, 0.75, 0.75, 0], abs=1e-15
        )
    ours, theirs = (module.kaiser_window(9, True, 800.0, dtype=module.float64) for module in (backlight, torch))
    assert backlight.isfinite(ours).all() and torch.isnan(theirs).any()  # I₀(800) overflows, the ratio does not
    ours, theirs = (module.kaiser_window(9, False, 3.5, dtype=module.float64) for module in (backlight, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_windows_refuse_what_pytorch_refuses(name):
    for module in (backlight, torch):
        with pytest.raises(RuntimeError, match=f"{name} requires non-negative window_length, got window_length=-1"):
            getattr(module, name)(-1)
        with pytest.raises(RuntimeError, match=f"{name} expects floating point dtypes, got: "):
            getattr(module, name)(3, dtype=module.int64)
        window = getattr(module, name)(3, requires_grad=True)
        assert window.requires_grad and window.is_leaf and window.dtype is module.float32
