"""A model folder for PyTorch, loaded by the library that wrote it, as a scorer: `engine="torch"`."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from backlight.adapters.torch_library import (
    checked_device,
    checked_dtype,
    dtype_named,
    loading,
    transformers_library,
)
from backlight.adapters.torch_models.recognition import Options, scorer_of
from backlight.adapters.torch_ranker import TorchRanker
from backlight.errors import InputError, install_hint
from backlight.models.ranker import listed_modules, model_settings, written_as
from backlight.models.scorer import Scorer

SENTENCE_MODELS = ("CrossEncoder", "MultiVectorEncoder", "SentenceTransformer", "SparseEncoder")
SPARSE = {"MLMTransformer", "SparseAutoEncoder", "SparseStaticEmbedding", "SpladePooling"}  # only a SparseEncoder's
LANGUAGE_MODELS = {  # how architectures end, and what loads them
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
}


def torch_scorer(
    folder: Path,
    name: str,
    *,
    label: int | str | None = None,
    instruction: str | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    compile: bool = False,
    read_typos: bool | None = None,
) -> Scorer:
    """Return the scorer of the model in a folder, which PyTorch runs.

    A sequence classifier without modules of sentence-transformers is a `TorchRanker`. What sentence-transformers wrote
    is loaded by it, as the class that the folder names. A language model scores by the token that it would answer with.
    Any other model of transformers is an encoder whose states are averaged, as sentence-transformers reads it.

    Args:
        folder, name, label, instruction, device, dtype, compile, read_typos: as for `TorchRanker`.

    Raises:
        InputError: a library, a file or the device is missing, or the model cannot score pairs.
    """
    settings, modules = model_settings(folder), listed_modules(folder)
    named = settings.get("architectures") or []
    if not modules and (not named or any(one.endswith("ForSequenceClassification") for one in named)):
        return TorchRanker(
            folder,
            name,
            label=label,
            instruction=instruction,
            device=device,
            dtype=dtype,
            compile=compile,
            read_typos=read_typos,
        )
    if read_typos:
        raise InputError(f"read_typos must be left out: the model in {folder} is no sequence classifier")
    device, dtype = checked_device(device), checked_dtype(dtype)
    answering = [loader for task, loader in LANGUAGE_MODELS.items() if any(one.endswith(task) for one in named)]
    if answering and not modules:
        model, tokenizer = _language_model(folder, answering[0], device, dtype)
    else:
        model, tokenizer = _sentence_model(folder, modules, device, dtype), None
    model.eval().requires_grad_(False)
    options = Options(tokenizer=tokenizer, label=label, instruction=instruction, name=name, compile=compile)
    return scorer_of(model, options)


def sentence_class(folder: Path, modules: Mapping[str, str]) -> str:
    """Return the class of sentence-transformers that a folder is to be loaded as."""
    named = written_as(folder)
    if named in SENTENCE_MODELS:
        return named
    if "LogitScore" in modules:
        return "CrossEncoder"
    return "SentenceTransformer" if SPARSE.isdisjoint(modules) else "SparseEncoder"


def _sentence_model(folder: Path, modules: Mapping[str, str], device: str, dtype: str) -> Any:
    kind = sentence_class(folder, modules)
    try:
        library = import_module("sentence_transformers")
    except ImportError as problem:
        raise InputError(
            f"the model in {folder} is a {kind} of sentence-transformers, which is missing: "
            + install_hint("sentence-transformers")
        ) from problem
    if not hasattr(library, kind):
        raise InputError(
            f"the model in {folder} is a {kind}, which needs sentence-transformers 6 or later, got version "
            f"{library.__version__}"
        )
    with loading("sentence-transformers", f"a {kind}", folder):
        return getattr(library, kind)(
            str(folder), device=device, local_files_only=True, model_kwargs={"dtype": dtype_named(dtype)}
        )


def _language_model(folder: Path, loader: str, device: str, dtype: str) -> tuple[Any, Any]:
    transformers = transformers_library()
    with loading("transformers", "a language model", folder):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        kind = getattr(transformers, loader)
        return kind.from_pretrained(folder, local_files_only=True, dtype=dtype_named(dtype)).to(device), tokenizer
