"""Short-time Fourier transforms: the spectra of a signal's windows, and the signal of such spectra."""

from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.ops.elementwise.complex_numbers import resolve_conj, view_as_real
from backlight.ops.fourier.transforms import Dims, complex_transform, half_spectrum, scale_of, signal_of_half
from backlight.ops.indexing.slicing import sliced
from backlight.ops.shape.expanding import expand
from backlight.ops.shape.padding import constant_pad_nd, pad
from backlight.ops.shape.reshaping import squeeze, unsqueeze
from backlight.ops.shape.striding import as_strided, unfold_backward
from backlight.ops.shape.transposing import transpose
from backlight.ops.type_promotion import has_gradient, holds_complex
from backlight.system.user_warnings import warn_once

__all__ = ["istft", "stft"]

NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
    "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress "
    "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)
NO_WINDOW_BACK = (
    "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to "
    "make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`."
)
WITHOUT_COMPLEX = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
    "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
    "complex output to recover the old return format."
)


def _flag(value: bool | None) -> str:
    """Return an option as PyTorch's messages print it."""
    return "None" if value is None else str(int(value))


def _window_text(window: TensorState | None) -> str:
    if window is None:
        return "None"
    return f"torch.{from_numpy_dtype(window._data.dtype).old_name}Tensor{{{list(window._data.shape)}}}"


def _shape_text(input: TensorState) -> str:
    return f"[{', '.join(map(str, input._data.shape))}]"


def _full_window(window: TensorState | None, n_fft: int, win_length: int, input: TensorState) -> TensorState | None:
    """Return a window of n_fft elements, zeros around the given one; ones where only a length is given."""
    if window is None:
        if win_length == n_fft:
            return None
        window = input.new_ones((win_length,))
    before = (n_fft - win_length) // 2
    return window if win_length == n_fft else constant_pad_nd(window, (before, n_fft - win_length - before))


def stft(
    input: TensorState,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: TensorState | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
):
    """Return the spectra of a signal's windows: one column for each window.

    Shapes: input (time,) or (batch, time) -> (n_fft // 2 + 1, windows), n_fft rows if not one-sided; with batch before

    Args:
        n_fft: how long a window is.
        hop_length: how far apart windows are; n_fft // 4 by default.
        win_length: the length of `window`, which is centred in n_fft elements; n_fft by default.
        window: what each window is multiplied by; ones by default.
        center: pad the signal at both ends, so that window k is centred at k · hop_length.
        pad_mode: how, as in `nn.functional.pad`.
        normalized: divide by √n_fft.
        onesided: leave out the half of the spectrum that mirrors the other; by default for real signals.
        return_complex: must be True for real signals; False, which is deprecated, gives pairs of parts.
        align_to_window: with center=False, let the first window begin where `window` does.

    Raises:
        RuntimeError: an option does not fit the signal or the others.
    """
    if center and align_to_window is not None:
        raise ShapeError("stft align_to_window should only be set when center = false")
    if center:
        shape = input._data.shape
        extended = input.view((1,) * (3 - len(shape)) + tuple(shape))
        extended = pad(extended, (n_fft // 2, n_fft // 2), pad_mode)
        input = extended.view(tuple(extended._data.shape)[3 - len(shape) :] if len(shape) < 3 else extended.shape)
    if window is None:
        warn_once(NO_WINDOW, stacklevel=3)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    complex_given = holds_complex(input) or (window is not None and holds_complex(window))
    if return_complex is None and not complex_given:
        raise ShapeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warn_once(WITHOUT_COMPLEX, stacklevel=3)
    _check_signal(input, n_fft, hop, length, window, normalized, onesided, return_complex, align_to_window)
    if onesided and complex_given:
        raise ShapeError("Cannot have onesided output if window or input is complex")
    full = _full_window(window, n_fft, length, input)
    rows = input if input._data.ndim == 2 else unsqueeze(input, 0)
    if not center and align_to_window:
        rows = pad(rows, ((n_fft - length) // 2,) * 2, pad_mode)
    batch, size = rows._data.shape
    steps = [step // rows._data.itemsize for step in rows._data.strides]
    frames = as_strided(rows, (batch, 1 + (size - n_fft) // hop, n_fft), (steps[0], hop * steps[1], steps[1]))
    if full is not None:
        frames = frames * full
    scale = scale_of("ortho" if normalized else None, n_fft, True)
    if holds_complex(frames):
        found = complex_transform(frames, Dims((2,)), scale, True)
    else:
        found = half_spectrum(frames, Dims((2,)), scale, onesided is None or bool(onesided))
    found = transpose(found, 1, 2)
    found = found if input._data.ndim == 2 else squeeze(found, 0)
    return view_as_real(found) if return_complex is False else found


def _check_signal(input, n_fft, hop, length, window, normalized, onesided, return_complex, align_to_window) -> None:
    """Raise PyTorch's error for a signal and options that do not fit."""
    shape = input._data.shape
    called = (
        f"stft(torch.{from_numpy_dtype(input._data.dtype).old_name}Tensor{_shape_text(input)}, n_fft={n_fft}, "
        f"hop_length={hop}, win_length={length}, window={_window_text(window)}, normalized={_flag(normalized)}, "
        f"onesided={_flag(onesided)}, return_complex={_flag(return_complex)}, align_to_window={_flag(align_to_window)})"
    )
    if not has_gradient(input._data.dtype):
        raise ShapeError(f"{called} : expected a tensor of floating point or complex values")
    if not 1 <= len(shape) <= 2:
        raise ShapeError(f"{called} : expected a 1D or 2D tensor")
    if not 0 < n_fft <= shape[-1]:
        raise ShapeError(f"{called} : expected 0 < n_fft < {shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise ShapeError(f"{called} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise ShapeError(f"{called} : expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._data.shape != (length,):
        raise ShapeError(
            f"{called} : expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._data.shape)}"
        )


def istft(
    input: TensorState,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: TensorState | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
):
    """Return the signal of its windows' spectra, of which overlapping windows are averaged: the inverse of `stft`.

    Args:
        length: how long the signal is; what the windows give by default.
        return_complex: whether the signal is complex: then the spectra must be whole.

    The other arguments are those of `stft`.

    Raises:
        RuntimeError: an option does not fit the spectra, or windows leave a gap.
    """
    if window is None:
        warn_once(NO_WINDOW_BACK, stacklevel=3)
    if not holds_complex(input):
        raise ShapeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    win_length = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    called = (
        f"istft(CPU{from_numpy_dtype(input._data.dtype).old_name}Type{_shape_text(input)}, n_fft={n_fft}, "
        f"hop_length={hop}, win_length={win_length}, window={_window_text(window)}, center={_flag(center)}, "
        f"normalized={_flag(normalized)}, onesided={_flag(onesided)}, length={length}, "
        f"return_complex={_flag(return_complex)})"
    )
    _check_spectra(input, called, n_fft, hop, win_length, window, onesided, return_complex)
    full = _full_window(window, n_fft, win_length, view_as_real(resolve_conj(input)))
    if full is None:
        full = view_as_real(resolve_conj(input)).new_ones((n_fft,))
    spectra = transpose(input if input._data.ndim == 3 else unsqueeze(input, 0), 1, 2)  # (batch, windows, rows)
    scale = scale_of("ortho" if normalized else None, n_fft, False)
    if return_complex:
        frames = complex_transform(spectra, Dims((2,)), scale, False)
    else:
        half = (
            spectra if _is_onesided(onesided, spectra._data.shape[-1], n_fft) else sliced(spectra, 2, 0, n_fft // 2 + 1)
        )
        frames = signal_of_half(half, Dims((2,)), scale, n_fft)
    batch, count, _ = frames._data.shape
    whole = n_fft + hop * (count - 1)
    signal = unfold_backward(frames * full.view((1, 1, n_fft)), (batch, whole), 1, n_fft, hop)
    squares = expand(full**2, (1, count, n_fft))
    envelope = unfold_backward(squares, (1, whole), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    signal, envelope = (sliced(one, 1, start, min(end, whole)) for one in (signal, envelope))
    if envelope._data.size and abs(envelope._data).min() < 1e-11:
        raise ShapeError(f"{called} window overlap add min: 1")
    signal = signal / envelope
    signal = signal if input._data.ndim == 3 else squeeze(signal, 0)
    if end > whole:
        warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            stacklevel=3,
        )
        signal = constant_pad_nd(signal, (0, end - whole))
    return signal


def _is_onesided(onesided: bool | None, rows: int, n_fft: int) -> bool:
    """Tell whether spectra of so many rows are halves."""
    return rows != n_fft if onesided is None else bool(onesided)


def _check_spectra(input, called, n_fft, hop, win_length, window, onesided, return_complex) -> None:
    """Raise PyTorch's error for spectra and options that do not fit."""
    shape = input._data.shape
    if not input._data.size:
        raise ShapeError(f"{called} : input tensor cannot be empty.")
    if len(shape) < 2:
        raise DimError(
            f"Dimension out of range (expected to be in range of [-{len(shape) + 1}, {len(shape)}], but got -3)"
        )
    if len(shape) > 3:
        raise ShapeError(f"{called} : expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    rows = shape[-2]
    onesided = _is_onesided(onesided, rows, n_fft)
    if onesided and rows != n_fft // 2 + 1:
        raise ShapeError(
            f"{called} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 "
            f"when onesided=True, but got {rows}"
        )
    if not onesided and rows != n_fft:
        raise ShapeError(
            f"{called} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when "
            f"onesided=False, but got {rows}"
        )
    if not 0 < hop <= win_length:
        raise ShapeError(f"{called} : expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise ShapeError(f"{called} : expected 0 < win_length <= n_fft")
    if window is not None and window._data.shape != (win_length,):
        raise ShapeError(f"{called} : Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise ShapeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and holds_complex(window):
        raise ShapeError("Complex windows are incompatible with return_complex=False")
