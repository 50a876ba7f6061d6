"""Writing a model folder anew with its weights stored in another way."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.errors import InputError
from backlight.models.checkpoint import WEIGHTS, read_settings, read_weights
from backlight.models.quantised import COMPACT, KEY, PER_ROW, base_of, compacted, quantised

COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "sentence_bert_config.json",
)
FEW_ROWS = 8  # of a matrix that is stored as int8 all the same


def export_float32(folder: Path, out: Path) -> None:
    """Write a model folder with plain float32 weights, as other libraries read it.

    Args:
        folder: a model folder, such as `find_model("builtin")`.
        out: where to write; made if it is missing.

    Raises:
        InputError: a file is missing or damaged, or the two folders are one.
    """
    settings = {name: value for name, value in read_settings(folder / "config.json").items() if name != KEY}
    weights = {name: np.asarray(weight, np.float32) for name, weight in read_weights(folder).items()}
    _write(folder, out, settings, weights)


def export_int8(folder: Path, out: Path) -> None:
    """Write a model folder with int8 weights (see NOTE [int8 per row] in models/quantised.py), for backlight alone.

    Args:
        folder: a model folder.
        out: where to write; made if it is missing.

    Raises:
        InputError: a file is missing or damaged, or the two folders are one.
    """
    _write(folder, out, read_settings(folder / "config.json") | {KEY: PER_ROW}, quantised(read_weights(folder)))


def export_compact(folder: Path, out: Path) -> None:
    """Write the folder of a fused cross-encoder with the matrices of its joint stream as differences.

    See NOTE [Stored differences] in models/quantised.py. Arguments and errors as `export_int8`.
    """
    weights = read_weights(folder)
    large = [name for name, one in weights.items() if one.ndim == 2 and len(one) >= FEW_ROWS]
    bases = {name: base_of(name) for name in large if base_of(name) in weights}
    (words,) = (name for name in weights if name.endswith("embeddings.word_embeddings.weight"))
    _write(folder, out, read_settings(folder / "config.json") | {KEY: COMPACT}, compacted(weights, bases, words))


def _write(folder: Path, out: Path, settings: Mapping, weights: Mapping[str, np.ndarray]) -> None:
    folder, out = Path(folder), Path(out)
    if folder.resolve() == out.resolve():
        raise InputError(f"the folder to write must be another than {folder}: name a new one")
    out.mkdir(parents=True, exist_ok=True)
    (out / WEIGHTS).write_bytes(save(dict(weights), {"format": "pt"}))
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
    (out / "config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
