"""The loss of texts that are aligned to longer signals (see NOTE [States of an alignment])."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.loss import ctc
from backlight.kernels.loss.ctc import Alignment
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.loss.regression_losses import reduced, reduction_of
from backlight.ops.shape.joining import stack
from backlight.ops.shape.padding import constant_pad_nd

FAR = -1e30  # stands for log 0 where a gradient is taken: −∞ − (−∞) would be nan


@op(name="ctc_loss", residuals=("alphas",))
def alignment_loss(xp, log_probs: Array, alignment: Alignment, zero_infinity: bool):
    """The negative log-likelihood of each text."""
    return ctc.forward(log_probs, alignment)


@alignment_loss.derivative("log_probs", formula="grad · (exp(log_probs) − the probability of each label at each frame)")
def alignment_loss_log_probs(
    grad: Array, out: Array, log_probs: Array, alphas: Array, alignment: Alignment, zero_infinity: bool, xp
):
    gradients = ctc.gradients(log_probs, out, alphas, alignment)
    if zero_infinity:
        gradients[:, xp.isinf(out)] = 0
    return gradients * grad[:, None]


@alignment_loss.decomposition
def alignment_loss_decomposition(log_probs: TensorState, alignment: Alignment, zero_infinity: bool):
    """Return the losses by the same recursion on tensors.

    Σ exp(log_probs) is added, since PyTorch's gradient is that of the loss behind a log_softmax.
    """
    frames = log_probs.shape[0]
    emitted = log_probs.gather(2, _constant(np.broadcast_to(alignment.labels, (frames, *alignment.labels.shape))))
    emitted, skips = emitted.clamp_min(FAR), _constant(alignment.skips)
    alpha = _constant(np.maximum(alignment.start, FAR)).to(log_probs.dtype)
    for frame in range(frames):
        skipping = where(skips, constant_pad_nd(alpha, (2, -2), FAR), FAR)
        entered = stack([alpha, constant_pad_nd(alpha, (1, -1), FAR), skipping]).logsumexp(0) + emitted[frame]
        alpha = where(_constant(alignment.frames[:, None] > frame), entered, alpha)
    losses = -where(_constant(alignment.ends), alpha, FAR).logsumexp(1)
    inside = _constant(np.arange(frames)[:, None, None] < alignment.frames[:, None])
    losses = losses + where(inside, log_probs.exp(), 0.0).sum((0, 2))
    return where(losses > -FAR / 2, 0.0, losses) if zero_infinity else losses


def _constant(array: Array):
    return wrap(np.array(array))


@composite_function
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Return the negative log-likelihood of texts that are shorter than the signals that say them.

    Shapes: log_probs (frames, batch, classes) or (frames, classes); targets (batch, longest), or all texts one after
    the other; lengths (batch,)

    Args:
        log_probs: logarithms of probabilities, as log_softmax gives them.
        blank: the class that stands for no label.
        reduction: "mean" (of each loss over its text's length), "sum" or "none".
        zero_infinity: count a text that is too long for its signal as 0, with no gradient.

    Raises:
        RuntimeError: sizes, lengths or labels do not fit.

    Source: Alex Graves et al.: Connectionist Temporal Classification, 2006
    """
    reduction = reduction_of(reduction)
    batched = log_probs._data.ndim == 3
    signals = log_probs if batched else log_probs.unsqueeze(1)
    lengths = _numbers(input_lengths, target_lengths)
    alignment = _checked(signals._data, targets._data, *lengths, int(blank))
    losses = alignment_loss(signals, alignment, bool(zero_infinity))
    if zero_infinity:
        losses = where(losses == float("inf"), 0.0, losses)
    if reduction == "mean":
        return (losses / _constant(np.maximum(alignment.lengths, 1)).to(losses.dtype)).mean()
    return reduced(losses if batched else losses.squeeze(0), reduction)


def _numbers(*lengths) -> list[np.ndarray]:
    """Return lengths given as tensors or as sequences, all in the same way, as arrays of integers."""
    if len({isinstance(one, TensorState) for one in lengths}) == 2:
        raise ArgumentError(
            "ctc_loss() received an invalid combination of arguments; give both lengths as tensors or both as tuples"
        )
    found = [one._data if isinstance(one, TensorState) else np.asarray(one, np.int64) for one in lengths]
    if any(one.dtype.kind not in "iu" for one in found):
        raise ShapeError("input_lengths and target_lengths must be integral; convert them with .long()")
    return [np.atleast_1d(one).astype(np.int64) for one in found]


_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _checked(log_probs: Array, targets: Array, frames: Array, lengths: Array, blank: int) -> Alignment:
    """Return what is aligned, or raise PyTorch's error."""
    if not log_probs.size:
        raise ShapeError("log_probs tensor must not be empty")
    if log_probs.ndim != 3:
        raise ShapeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' "
            f"{_WHERE}"
        )
    if log_probs.dtype not in (np.float32, np.float64):
        name = from_numpy_dtype(log_probs.dtype).old_name
        raise UnsupportedError(f"\"ctc_loss_cpu\" not implemented for '{name}'; convert log_probs with .float()")
    if not 0 <= blank < log_probs.shape[2]:
        raise ShapeError(f"blank must be in label range; it is {blank}, and there are {log_probs.shape[2]} classes")
    for name, given in (("input_lengths", frames), ("target_lengths", lengths)):
        if len(given) != log_probs.shape[1]:
            raise ShapeError(f"{name} must be of size batch_size; there are {len(given)} of {log_probs.shape[1]}")
        if given.min() < 0:
            raise ShapeError(f"Expected {name} to have value at least 0, but got value {given.min()} {_WHERE}")
    if frames.max() > log_probs.shape[0]:
        raise ShapeError(
            f"Expected input_lengths to have value at most {log_probs.shape[0]}, but got value {frames.max()} {_WHERE}"
        )
    texts = _label_sequences(targets, lengths)
    inside = texts[np.arange(texts.shape[1]) < lengths[:, None]]
    if inside.size and not 0 <= inside.min() <= inside.max() < log_probs.shape[2]:
        raise ShapeError(
            f"targets must be classes from 0 to {log_probs.shape[2] - 1}; they go from {inside.min()} to {inside.max()}"
        )
    return ctc.states_of(texts, frames, lengths, blank)


def _label_sequences(targets: Array, lengths: Array) -> np.ndarray:
    """Return the texts as (batch, longest)."""
    if targets.ndim not in (1, 2):
        raise ShapeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {_WHERE}"
        )
    wanted, least = (int(lengths.sum()), False) if targets.ndim == 1 else (len(lengths), False)
    found = len(targets)
    if found == wanted and targets.ndim == 2:
        wanted, least, found = int(lengths.max()), True, targets.shape[1]
    if found < wanted or (found > wanted and not least):
        raise ShapeError(
            f"Expected tensor to have size {'at least ' * least}{wanted} at dimension {int(least)}, but got size "
            f"{found} for argument #2 'targets' {_WHERE}"
        )
    if targets.ndim == 2:
        return targets[:, : lengths.max()].astype(np.int64)
    texts = np.zeros((len(lengths), int(lengths.max())), np.int64)
    texts[np.arange(texts.shape[1]) < lengths[:, None]] = targets
    return texts
