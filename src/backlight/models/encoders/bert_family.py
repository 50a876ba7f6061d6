"""Families of BERT's shape, each by what differs: ELECTRA, RoBERTa, XLM-R, CamemBERT and DistilBERT."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from backlight.errors import InputError
from backlight.models.encoders.bert import BertConfig
from backlight.models.encoders.encoder import Size


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """The sizes of an ELECTRA, whose embeddings may be shorter than its hidden states.

    Source: Clark, Luong, Le, Manning, ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators,
    2020, arXiv:2003.10555.
    """

    family: ClassVar[str] = "ELECTRA"
    prefix: ClassVar[str] = "electra."
    head: ClassVar[tuple[str, str, str]] = ("classifier.dense", "gelu", "classifier.out_proj")

    embedding_size: Size = 128


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The sizes of a RoBERTa, whose positions count from the id of its padding + 1.

    Source: Liu and others, RoBERTa: A Robustly Optimized BERT Pretraining Approach, 2019, arXiv:1907.11692.
    """

    family: ClassVar[str] = "RoBERTa"
    prefix: ClassVar[str] = "roberta."
    head: ClassVar[tuple[str, str, str]] = ("classifier.dense", "tanh", "classifier.out_proj")

    pad_token_id: int = 1

    @property
    def first_position(self) -> int:
        """The row of the first token's position."""
        return self.pad_token_id + 1

    def _check(self, settings: Mapping) -> None:
        super()._check(settings)
        last = self.max_position_embeddings - 2
        said = settings.get("pad_token_id", self.pad_token_id)
        if said is None or not 0 <= self.pad_token_id <= last:
            raise InputError(f"pad_token_id must be a whole number from 0 to {last}, got {said!r}")


@dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """The sizes of an XLM-R: RoBERTa for a hundred languages.

    Source: Conneau and others, Unsupervised Cross-lingual Representation Learning at Scale, 2019, arXiv:1911.02116.
    """

    family: ClassVar[str] = "XLM-R"


@dataclass(frozen=True)
class CamembertConfig(RobertaConfig):
    """The sizes of a CamemBERT: RoBERTa for French.

    Source: Martin and others, CamemBERT: a Tasty French Language Model, 2019, arXiv:1911.03894.
    """

    family: ClassVar[str] = "CamemBERT"


@dataclass(frozen=True)
class DistilBertConfig(BertConfig):
    """The sizes of a DistilBERT, which has no segments, and names of its own.

    Source: Sanh, Debut, Chaumond, Wolf, DistilBERT, a distilled version of BERT, 2019, arXiv:1910.01108.
    """

    family: ClassVar[str] = "DistilBERT"
    prefix: ClassVar[str] = "distilbert."
    head: ClassVar[tuple[str, str, str]] = ("pre_classifier", "relu", "classifier")
    names: ClassVar[Mapping[str, str]] = {
        "encoder.layer": "transformer.layer",
        "attention.self.qkv": "attention.qkv_lin",
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "output.LayerNorm": "output_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
    }

    @property
    def segments(self) -> int:
        """None."""
        return 0

    @classmethod
    def of(cls, settings: Mapping) -> "DistilBertConfig":
        """Return the sizes that a config.json says, by DistilBERT's names of them.

        Raises:
            InputError: a size is missing, or a setting is not supported by this encoder.
        """
        said = {ours: settings[name] for ours, name in _SIZES.items() if name in settings}
        return super().of({**settings, **said, "layer_norm_eps": 1e-12})


_SIZES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
