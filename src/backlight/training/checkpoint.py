"""Checkpoints: any state of dicts, lists, numbers and tensors as one safetensors file, and back bit for bit.

NOTE [How a state is packed]
The tensors are the file's tensors, under their path (`model/0.weight`). What surrounds them is JSON in the file's
metadata, where {"tensor": path} stands for a tensor and {"tuple": […]} and {"dict": [[key, value], …]} for what JSON
does not tell apart. No code is run in loading one.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.dtypes import bfloat16
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import InputError
from backlight.formats.array_files import read_arrays
from backlight.formats.strict_json import parse_json
from backlight.training.run_folder import write_atomically

KEY = "backlight"


def save_checkpoint(file: Path, state: dict) -> None:
    """Write a state in one piece (see NOTE [How a state is packed]).

    Raises:
        InputError: it holds something that is neither a tensor nor a plain value.
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _packed(state, "", arrays)
    write_atomically(file, save(arrays, metadata={KEY: json.dumps(tree)}))


def load_checkpoint(file: Path) -> dict:
    """Return the state that `save_checkpoint` wrote.

    Raises:
        InputError: the file is missing, damaged or no checkpoint.
    """
    arrays, texts = read_arrays(file, "the checkpoint ")
    if KEY not in texts:
        raise InputError(f"{file} must be a checkpoint of a run, and is a plain safetensors file: load its weights")
    try:
        state = _unpacked(parse_json(texts[KEY], finite=False), {name: _own(one) for name, one in arrays.items()})
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(f"cannot read the checkpoint {file}: what stands beside its tensors is damaged") from problem
    if not isinstance(state, dict):
        raise InputError(f"cannot read the checkpoint {file}: it must hold a dict, got {type(state).__name__}")
    return state


def _own(array: np.ndarray) -> np.ndarray:
    """Return an array that owns its memory; bits of bfloat16 come without their dtype."""
    return np.array(array.view(bfloat16.numpy) if array.dtype.kind == "V" else array)


def _packed(value: object, path: str, arrays: dict):
    """Return a value as JSON can hold it, and put its tensors into `arrays`."""
    if isinstance(value, TensorState):
        arrays[path] = np.ascontiguousarray(value._data).reshape(np.shape(value._data))
        return {"tensor": path}
    if isinstance(value, dict):
        return {"dict": [[key, _packed(entry, f"{path}/{key}".lstrip("/"), arrays)] for key, entry in value.items()]}
    if isinstance(value, (list, tuple)):
        entries = [_packed(entry, f"{path}/{place}", arrays) for place, entry in enumerate(value)]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"a checkpoint holds tensors and plain values, got {type(value).__name__} at {path}")


def _unpacked(value: object, arrays: dict):
    """Return what `_packed` was given."""
    if isinstance(value, list):
        return [_unpacked(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return wrap(arrays[content])
    if kind == "tuple":
        return tuple(_unpacked(entry, arrays) for entry in content)
    return {key: _unpacked(entry, arrays) for key, entry in content}
