"""Collating: turn a list of samples into a batch, with tensors stacked at every depth."""

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from backlight.data.dataset import Gathered
from backlight.dtypes import float64
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.ops.shape.joining import stack
from backlight.tensor.creation import as_tensor, tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence):
    """Return samples as one batch.

    Tensors and arrays are stacked, numbers become a tensor, strings stay a list; dicts, tuples and lists are collated
    entry by entry.

    Raises:
        TypeError: a sample holds something else.
        RuntimeError: samples differ in length or shape.
    """
    if isinstance(batch, Gathered):
        return batch.collated()
    first = batch[0]
    for kind, collate in BY_KIND.items():
        if isinstance(first, kind):
            return collate(batch)
    if isinstance(first, Mapping):
        return _mapping(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        return _collated_sequences(batch)
    raise _cannot_collate(type(first))


def _cannot_collate(kind: object) -> ArgumentError:
    return ArgumentError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{kind}; write a collate_fn for it"
    )


def _collated_sequences(batch: Sequence):
    first = batch[0]
    if _is_namedtuple(first):
        return type(first)(*(default_collate(entries) for entries in zip(*batch)))
    if any(len(sample) != len(first) for sample in batch):
        raise ShapeError(
            "each element in list of batch should be of equal size; the sizes are "
            f"{[len(sample) for sample in batch]}: pad them, or write a collate_fn"
        )
    return _sequence(first, [default_collate(entries) for entries in zip(*batch)])


def _collated_arrays(batch: Sequence):
    if batch[0].dtype.kind in "SUOa":
        raise _cannot_collate(batch[0].dtype)
    return default_collate([as_tensor(array) for array in batch])


BY_KIND: dict[type | tuple[type, ...], Callable] = {
    TensorState: stack,
    np.ndarray: _collated_arrays,
    (np.bool_, np.number): lambda batch: as_tensor(np.array(batch)),
    float: lambda batch: tensor(batch, dtype=float64),
    int: tensor,
    (str, bytes): lambda batch: batch,
}


def default_convert(data: object):
    """Convert NumPy values at every depth to tensors: the default for samples that are not batched."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUOa" else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(entry) for entry in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(entry) for entry in data])
    return data


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _mapping(like: Mapping, entries: dict):
    """Return entries as a mapping of the same class, or as a dict if that class cannot be made so."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(entries)
        made = copy.copy(like)
        made.update(entries)
        return made
    except TypeError:
        return entries


def _sequence(like: Sequence, entries: list):
    """Return entries as a sequence of the same class (a tuple becomes a list, as in PyTorch)."""
    if isinstance(like, tuple):
        return entries
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(entries)
        made = copy.copy(like)
        for place, entry in enumerate(entries):
            made[place] = entry
        return made
    except TypeError:
        return entries
