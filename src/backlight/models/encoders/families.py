"""The families of models that backlight runs, by the `model_type` of a config.json."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from backlight.errors import InputError, install_hint
from backlight.models.encoders.bert import (
    Bert,
    BertConfig,
    BertHead,
    CamembertConfig,
    DistilBertConfig,
    ElectraConfig,
    RobertaConfig,
    XlmRobertaConfig,
)
from backlight.models.encoders.deberta import Deberta, DebertaConfig
from backlight.models.encoders.modernbert import ModernBert, ModernBertConfig, ModernBertHead
from backlight.models.encoders.qwen3 import Qwen3, Qwen3Config, Qwen3Head
from backlight.models.encoders.two_streams import FusedHead, TwoStreamBert
from backlight.models.prompts import Prompt, qwen3_prompt

FUSED = "bert-fused"  # the model_type whose scores are a logit and a cosine: see models/fused.py


@dataclass(frozen=True)
class Family:
    """What runs the models of one family (see NOTE [An encoder])."""

    config: type  # `of(settings)` reads a config.json
    encoder: type
    head: type
    headless: tuple[str, ...]  # architectures whose encoder alone is used, in a bi-encoder
    classifiers: tuple[str, ...]  # architectures whose head gives the score, in a cross-encoder
    answering: tuple[str, ...] = ()  # those that score by the token they would answer with
    prompt: Callable[[str], Prompt] | None = None  # what stands around a pair, given an instruction

    def has_head(self, settings: Mapping) -> bool:
        """Return whether a config.json says that the model's own head gives the score."""
        return not set(_architectures(settings)).isdisjoint((*self.classifiers, *self.answering))

    def answers(self, settings: Mapping) -> bool:
        """Return whether a config.json says that the score is how much rather the model would answer yes than no."""
        return not set(_architectures(settings)).isdisjoint(self.answering)


def family_of(folder: Path, settings: Mapping) -> Family:
    """Return what runs the model in a folder.

    Args:
        folder: where it is, for errors.
        settings: what its config.json says.

    Raises:
        InputError: backlight knows no such family, or not what the model puts upon its encoder.
    """
    kind, named = settings.get("model_type"), _architectures(settings)
    family = FAMILIES.get(kind)
    if family is None:
        raise InputError(
            f"the model in {folder} is of an unknown architecture, {kind or 'none named'}: backlight runs "
            f"{', '.join(FAMILIES)}; {_ELSEWHERE}"
        )
    known = (*family.classifiers, *family.answering, *family.headless)
    if named and set(named).isdisjoint(known):
        raise InputError(
            f"the model in {folder} is of an unknown architecture, {', '.join(named)}: of {kind} backlight runs "
            f"{', '.join(known)}; {_ELSEWHERE}"
        )
    return family


def _architectures(settings: Mapping) -> list[str]:
    return settings.get("architectures") or []


def _like_bert(name: str, config: type, encoder: type, head: type) -> Family:
    """Return a family whose architectures are named as BERT's, beginning with `name`."""
    headless = tuple(name + task for task in ("Model", "ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction"))
    return Family(config, encoder, head, headless, (f"{name}ForSequenceClassification",))


FAMILIES: dict[str, Family] = {
    "bert": _like_bert("Bert", BertConfig, Bert, BertHead),
    FUSED: Family(BertConfig, TwoStreamBert, FusedHead, headless=(), classifiers=("BertFusedReranker",)),
    "camembert": _like_bert("Camembert", CamembertConfig, Bert, BertHead),
    "deberta-v2": _like_bert("DebertaV2", DebertaConfig, Deberta, BertHead),
    "distilbert": _like_bert("DistilBert", DistilBertConfig, Bert, BertHead),
    "electra": _like_bert("Electra", ElectraConfig, Bert, BertHead),
    "modernbert": Family(
        ModernBertConfig,
        ModernBert,
        ModernBertHead,
        headless=("ModernBertModel", "ModernBertForMaskedLM"),
        classifiers=("ModernBertForSequenceClassification",),
    ),
    "qwen3": Family(
        Qwen3Config,
        Qwen3,
        Qwen3Head,
        headless=("Qwen3Model",),
        classifiers=("Qwen3ForSequenceClassification",),
        answering=("Qwen3ForCausalLM",),
        prompt=qwen3_prompt,
    ),
    "roberta": _like_bert("Roberta", RobertaConfig, Bert, BertHead),
    "xlm-roberta": _like_bert("XLMRoberta", XlmRobertaConfig, Bert, BertHead),
}
_ELSEWHERE = f'PyTorch runs the others: {install_hint("torch")}, then load the model with engine="torch"'
