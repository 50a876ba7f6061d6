"""Models of sentence-transformers that read query and document apart: one vector a text, one a term, or one a token.

NOTE [Which call is made]
Texts are encoded as `encode_query` and `encode_document` do: with their prompts, tasks and lengths, through all modules
of the model. The scores are those of the model's own similarity function, written out here, as reading its name sets it
on the model. SPLADE's pooling works in place, which autograd refuses; with a leaf it is computed here out of place.

Source: Formal, Piwowarski, Clinchant, SPLADE, 2021, arXiv:2107.05720; Khattab, Zaharia, ColBERT, 2020,
arXiv:2004.12832.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backlight.adapters.torch_library import torch_library
from backlight.adapters.torch_models.kinds import Inputs, ModuleModel
from backlight.errors import InputError

TASKS = ("query", "document")
SIMILARITIES: dict[str, Callable[[Any, Any], Any]] = {  # of vectors in pairs, (pairs, hidden) -> (pairs,)
    "cosine": lambda queries, documents: (_unit(queries) * _unit(documents)).sum(-1),
    "dot": lambda queries, documents: (queries * documents).sum(-1),
    "euclidean": lambda queries, documents: -(queries - documents).square().sum(-1).sqrt(),
    "manhattan": lambda queries, documents: -(queries - documents).abs().sum(-1),
}


@dataclass(frozen=True)
class Reading:
    """What preprocessing adds to the features of one side.

    Args:
        constants: further features: the modality, how many tokens the prompt has.
        segments: whether segments are among the features.
        expansion: how queries are filled up with tokens, as the model's `query_expansion` says; None: they are not.
        expansion_id: the token that they are filled up with.
    """

    constants: Mapping[str, Any]
    segments: bool = False
    expansion: Mapping[str, Any] | None = None
    expansion_id: int | None = None


class TwoTowers(ModuleModel):
    """A SentenceTransformer: the score is the similarity of two embeddings.

    Args:
        readings: of queries and of documents.
        similarity: a key of `SIMILARITIES`.
    """

    sides = 2

    def __init__(self, module: Any, readings: Sequence[Reading], similarity: str):
        super().__init__(module, module.transformers_model)
        self._readings, self.similarity = readings, similarity
        self._truncate = getattr(module, "truncate_dim", None)

    def features(self, side: int, inputs: Inputs) -> dict:
        """Return the features of a call for texts of one side."""
        reading = self._readings[side]
        found = {**reading.constants, "input_ids": inputs.ids, "attention_mask": inputs.mask}
        return found | ({"token_type_ids": inputs.types} if reading.segments else {})

    def read(self, side: int, inputs: Inputs) -> list:
        """Return the embedding of each text."""
        vectors = self.module(self.features(side, inputs), task=TASKS[side])["sentence_embedding"]
        return list(vectors[:, : self._truncate] if self._truncate else vectors)

    def compare(self, queries: Sequence, documents: Sequence) -> Any:
        """Return the similarity of each pair of embeddings, (pairs,)."""
        stack = torch_library().stack
        return SIMILARITIES[self.similarity](stack(list(queries)).float(), stack(list(documents)).float())


class SparseTerms(TwoTowers):
    """A SparseEncoder: embeddings have a weight for each term of the vocabulary."""

    def encode(self, side: int, inputs: Inputs, leaf: Any = None) -> list:
        """Return the weights of the terms of each text, (vocabulary,) each."""
        pooling = [one for one in self.module if type(one).__name__ == "SpladePooling"]
        sizes = [one.embedding_dimension for one in pooling]
        try:
            return super().encode(side, inputs, leaf)
        finally:
            for one, size in zip(pooling, sizes):
                one.embedding_dimension = size  # it sets it in its first call

    def read(self, side: int, inputs: Inputs) -> list:
        """Return the weights of the terms of each text."""
        features = self.features(side, inputs)
        if not torch_library().is_grad_enabled():
            features = self.module(features, task=TASKS[side])
        else:
            for module in self.module:
                if type(module).__name__ == "SpladePooling":
                    features["sentence_embedding"] = _pooled_terms(module, features)
                else:
                    features = module(features)
        return list(self._most_active(features["sentence_embedding"]))

    def _most_active(self, weights: Any) -> Any:
        """Return weights without all but the largest of each text, where the model keeps only so many."""
        most = getattr(self.module, "max_active_dims", None)
        if not most or most >= weights.shape[1]:
            return weights
        kept = weights.detach().topk(most, dim=1).indices
        return weights * torch_library().zeros_like(weights).scatter(1, kept, 1.0)


def _pooled_terms(pooling: Any, features: Mapping[str, Any]) -> Any:
    """Return log(1 + ReLU(logit)), its maximum or sum over a text's tokens; (texts, vocabulary)."""
    logits, mask = features["token_embeddings"], features["attention_mask"]
    weights = (logits * mask[..., None].to(logits.dtype)).relu().log1p()
    if pooling.activation_function == "log1p_relu":
        weights = weights.log1p()
    return weights.amax(1) if pooling.pooling_strategy == "max" else weights.sum(1)


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The vectors of one text's tokens, and in which columns of its rectangle they stand."""

    vectors: Any  # (kept tokens, size)
    columns: Any  # (kept tokens,)


class LateInteraction(TwoTowers):
    """A MultiVectorEncoder: the score is MaxSim, Σ over query tokens of the largest similarity to a document token."""

    def features(self, side: int, inputs: Inputs) -> dict:
        """Return the features of a call, queries filled up where the model does so."""
        found, expansion = super().features(side, inputs), self._readings[side].expansion
        if expansion is None:
            return found
        torch, length = torch_library(), expansion["length"]
        missing = max(0, length - inputs.ids.shape[1])
        for name in ("input_ids", "attention_mask", "token_type_ids"):
            if name in found:
                found[name] = torch.nn.functional.pad(found[name], (0, missing))
        columns = torch.arange(found["input_ids"].shape[1], device=inputs.ids.device)
        last = (inputs.mask * columns[: inputs.mask.shape[1]]).amax(1, keepdim=True)
        added = (columns > last) & (columns < length)  # what is left out before a text's last token is no expansion
        found["input_ids"] = found["input_ids"].masked_fill(added, self._readings[side].expansion_id)
        if expansion["attend"]:
            found["attention_mask"] = found["attention_mask"].masked_fill(added, 1)
        return found | {"query_expansion_positions": added}

    def read(self, side: int, inputs: Inputs) -> list[TokenVectors]:
        """Return the vectors of each text's tokens that count."""
        features = self.module(self.features(side, inputs), task=TASKS[side])
        kept = features["attention_mask"].bool()
        return [
            TokenVectors(vectors[own].float(), own.nonzero()[:, 0])
            for vectors, own in zip(features["token_embeddings"], kept)
        ]

    def compare(self, queries: Sequence[TokenVectors], documents: Sequence[TokenVectors]) -> Any:
        """Return MaxSim of each pair, (pairs,); its mean over the query's tokens for `meanmaxsim`."""
        return torch_library().stack([self._maxsim(*pair) for pair in zip(queries, documents)])

    def _maxsim(self, query: TokenVectors, document: TokenVectors) -> Any:
        if not len(document.vectors) or not len(query.vectors):
            return query.vectors.sum() * 0 + document.vectors.sum() * 0
        total = (query.vectors @ document.vectors.T).amax(1).sum()
        return total / len(query.vectors) if self.similarity == "meanmaxsim" else total

    def matches(self, query: TokenVectors, document: TokenVectors) -> list[tuple[int, int, float]]:
        """Return for each query token its column, the column of its best document token, and what it brings."""
        if not len(document.vectors):
            return []
        best = (query.vectors @ document.vectors.T).max(1)
        share = len(query.vectors) if self.similarity == "meanmaxsim" else 1
        columns = document.columns[best.indices].tolist()
        return list(zip(query.columns.tolist(), columns, (best.values / share).tolist()))


def similarity_of(module: Any, known: Sequence[str], default: str) -> str:
    """Return the name of a model's similarity function. Raises InputError: it is none of those known."""
    name = getattr(module, "_similarity_fn_name", None) or default
    if name not in known:
        raise InputError(f"similarity_fn_name must be one of {', '.join(known)}, got {name}")
    return name


def _unit(vectors: Any) -> Any:
    return torch_library().nn.functional.normalize(vectors, dim=-1)
