"""Connectionist temporal classification: sums over all alignments of a text to a longer signal, in logarithms.

NOTE [States of an alignment]
A target of n labels has 2n + 1 states: a blank, the first label, a blank, … From one frame to the next an alignment
stays in its state, goes on by one, or skips a blank between two different labels. alpha(t, s) is the logarithm of the
total probability of all ways to be in state s at frame t, beta(t, s) of all ways from there to the end; both count
frame t itself.

Source: Alex Graves et al.: Connectionist Temporal Classification, 2006
"""

from typing import NamedTuple

import numpy as np

from backlight.kernels.reduction.sorting import sums_by_index
from backlight.kernels.state_blocks import silent_floats


class Alignment(NamedTuple):
    """What is aligned.

    Args:
        labels: the label of each state, (batch, states); blanks where a text is shorter.
        frames: how many frames each signal has, (batch,).
        lengths: how many labels each text has, (batch,).
    """

    labels: np.ndarray
    frames: np.ndarray
    lengths: np.ndarray

    @property
    def skips(self) -> np.ndarray:
        """Whether a state may be entered from two states before, (batch, states)."""
        found = np.zeros(self.labels.shape, bool)
        found[:, 3::2] = self.labels[:, 3::2] != self.labels[:, 1:-2:2]
        return found

    @property
    def ends(self) -> np.ndarray:
        """Whether an alignment may end in a state, (batch, states)."""
        states = np.arange(self.labels.shape[1])
        last = 2 * self.lengths[:, None]
        return (states == last) | ((states == last - 1) & (last > 0))

    @property
    def start(self) -> np.ndarray:
        """What stands for alpha before the first frame, (batch, states): all are in the first blank."""
        found = np.full(self.labels.shape, -np.inf)
        found[:, 0] = 0
        return found

    def of_states(self, log_probs: np.ndarray) -> np.ndarray:
        """Return the logarithms of the states' labels: (frames, batch, classes) -> (frames, batch, states)."""
        return np.take_along_axis(log_probs, self.labels[None], 2)


def states_of(targets: np.ndarray, frames: np.ndarray, lengths: np.ndarray, blank: int) -> Alignment:
    """Return the states of texts (batch, longest): each label between two blanks."""
    labels = np.full((len(targets), 2 * targets.shape[1] + 1), blank, np.int64)
    inside = np.arange(targets.shape[1]) < lengths[:, None]
    labels[:, 1::2] = np.where(inside, targets, blank)
    return Alignment(labels, frames, lengths)


def forward(log_probs: np.ndarray, alignment: Alignment) -> tuple[np.ndarray, np.ndarray]:
    """Return the negative log-likelihood of each text and all alphas.

    Shapes: log_probs (frames, batch, classes) -> (batch,), (frames, batch, states)
    """
    emitted, skips = alignment.of_states(log_probs), alignment.skips
    alphas = np.empty(emitted.shape, emitted.dtype)
    before = start = alignment.start.astype(emitted.dtype)
    for frame, there in enumerate(emitted):
        before = alphas[frame] = _entered(before, skips) + there
    last = alphas[np.maximum(alignment.frames - 1, 0), np.arange(len(skips))]
    last = np.where(alignment.frames[:, None] > 0, last, start)
    return -_logsumexp(np.where(alignment.ends, last, -np.inf), 1), alphas


def gradients(log_probs: np.ndarray, losses: np.ndarray, alphas: np.ndarray, alignment: Alignment) -> np.ndarray:
    """Return exp(log_probs) − the probability to be at each label in each frame: PyTorch's gradient of the losses.

    It is the gradient for what log_softmax was applied to. Frames behind a signal's end have none.
    """
    emitted = alignment.of_states(log_probs)
    betas = _betas(emitted, alignment)
    with silent_floats():
        there = np.exp(alphas + betas - emitted + losses[:, None])  # (frames, batch, states)
    there[np.isneginf(emitted)] = 0
    frames, batch, classes = log_probs.shape
    places = alignment.labels + np.arange(batch)[:, None] * classes
    sums = sums_by_index(there.transpose(1, 2, 0).reshape(-1, frames), places.reshape(-1), batch * classes)
    found = np.exp(log_probs) - sums.reshape(batch, classes, frames).transpose(2, 0, 1)
    found[:, np.isinf(losses)] = np.nan  # as in PyTorch: no alignment has a probability
    found[np.arange(frames)[:, None] >= alignment.frames] = 0
    return found


def _betas(emitted: np.ndarray, alignment: Alignment) -> np.ndarray:
    skips = np.zeros_like(alignment.skips)
    skips[:, :-2] = alignment.skips[:, 2:]  # whether one may skip from a state
    skips = skips[:, ::-1]
    betas = np.full(emitted.shape, -np.inf, emitted.dtype)
    after = np.full(emitted.shape[1:], -np.inf, emitted.dtype)
    ends = np.where(alignment.ends, 0, after)
    for frame in range(len(emitted) - 1, -1, -1):
        going_on = _entered(after[:, ::-1], skips)[:, ::-1]
        at_end = (alignment.frames == frame + 1)[:, None]
        after = np.where(at_end, ends, going_on) + emitted[frame]
        betas[frame] = after
    return betas


def _entered(before: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """Return the logarithms of the ways into each state: from itself, from one before, and from two before."""
    ways = np.full((3, *before.shape), -np.inf, before.dtype)
    ways[0] = before
    ways[1, :, 1:] = before[:, :-1]
    ways[2, :, 2:] = np.where(skips[:, 2:], before[:, :-2], -np.inf)
    return _logsumexp(ways, 0)


def _logsumexp(values: np.ndarray, axis: int) -> np.ndarray:
    highest = values.max(axis, keepdims=True)
    highest = np.where(np.isneginf(highest), 0, highest)
    with silent_floats():
        return np.log(np.exp(values - highest).sum(axis)) + highest.squeeze(axis)
