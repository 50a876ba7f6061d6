"""Any sequence classifier in a folder that PyTorch and transformers run, as a scorer."""

import inspect
from pathlib import Path
from typing import Any

from backlight.adapters.padded_batches import Padding
from backlight.adapters.torch_library import (
    checked_device,
    checked_dtype,
    dtype_named,
    loading,
    torch_library,
    transformers_library,
)
from backlight.adapters.torch_models.kinds import Classifier
from backlight.adapters.torch_models.scorer import ROUNDING, TorchScorer
from backlight.errors import InputError
from backlight.models.encoders.families import FAMILIES
from backlight.models.ranker import activation_of, chosen_label, labels_of, model_settings, reader_of, tokenizer_of
from backlight.models.tokens import tokenizer_settings

LONGEST = 8192  # tokens that are read where neither the model nor its tokenizer has a limit


class TorchRanker(TorchScorer):
    """A cross-encoder that PyTorch and transformers run, frozen.

    Args:
        folder: as `save_pretrained` writes it, with the `tokenizer.json` of a fast tokenizer.
        name: what to call the model; by default as the folder.
        label: which logit of a classifier with several is the score.
        instruction: what makes a document relevant, for a model whose prompt says it.
        device: where it runs: "cpu", "cuda", "cuda:1", "mps".
        dtype: what it runs in: "float32", "bfloat16", "float16"; "auto" for what its weights are stored in.
        compile: whether `torch.compile` compiles its layers.
        read_typos: whether misspelt words of queries are read as others; by default what the folder says.

    Raises:
        InputError: a library, a file or the device is missing, or the folder holds no sequence classifier.
    """

    def __init__(
        self,
        folder: Path,
        name: str | None = None,
        *,
        label: int | None = None,
        instruction: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        compile: bool = False,
        read_typos: bool | None = None,
    ):
        folder, settings = Path(folder), model_settings(Path(folder))
        device, dtype = checked_device(device), checked_dtype(dtype)
        loaded = _loaded(folder, dtype).to(device)
        labels = labels_of(settings)
        chosen = chosen_label(label, labels, folder)
        says = tokenizer_settings(folder)
        segments = "token_type_ids" in (says.model_input_names or ["token_type_ids"]) and takes_segments(loaded)
        family = FAMILIES.get(settings.get("model_type"))
        tokenizer = tokenizer_of(folder, longest_of(loaded))
        super().__init__(
            Classifier(loaded, label=chosen, segments=segments),
            reader_of(folder, family and family.prompt, tokenizer, instruction, read_typos),
            name=name or folder.resolve().name,
            score_name="logit" if len(labels) == 1 else f"logit of {labels[chosen]}",
            activation=activation_of(settings),
            padding=Padding(pad=settings.get("pad_token_id") or 0, left=says.padding_side == "left"),
            device=device,
            rounding=rounding_of(loaded),
            compile=compile,
        )


def takes_segments(module: Any) -> bool:
    """Return whether a model of transformers takes segments and has weights for them."""
    return "token_type_ids" in inspect.signature(module.forward).parameters and any(
        "token_type_embed" in weight or "seg_embed" in weight for weight, _ in module.named_parameters()
    )


def longest_of(module: Any) -> int:
    """Return how many tokens a model of transformers has positions for."""
    embedding = torch_library().nn.Embedding
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, embedding):
            reserved = 0 if part.padding_idx is None else part.padding_idx + 1  # RoBERTa counts from there
            return part.num_embeddings - reserved
    limit = getattr(module.config, "max_position_embeddings", None) or LONGEST
    return min(limit, LONGEST) if limit > 0 else LONGEST  # -1 says that there is none


def rounding_of(module: Any) -> float:
    """Return how far scores of one pair may differ between batches, by the least exact dtype of a model's weights."""
    dtypes = {str(weight.dtype).removeprefix("torch.") for weight in module.parameters()}
    return max((ROUNDING.get(dtype, ROUNDING["float32"]) for dtype in dtypes), default=ROUNDING["float32"])


def _loaded(folder: Path, dtype: str) -> Any:
    with loading("transformers", "a sequence classifier", folder):  # missing weights are an error below
        model, loading_info = transformers_library().AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, dtype=dtype_named(dtype), output_loading_info=True
        )
    if loading_info["missing_keys"]:
        raise InputError(
            f"the weights in {folder} must hold those of a sequence classifier, and lack "
            f"{', '.join(sorted(loading_info['missing_keys']))}: transformers would draw them at random"
        )
    return model.eval().requires_grad_(False)
