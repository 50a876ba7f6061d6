"""What PyTorch models make of padded sequences: how each kind is called, and what its score is.

NOTE [A model on PyTorch]
`TorchScorer` runs any object with
    sides           how many sequences it reads a pair: 1, or 2 where query and document are read apart
    name            what it is called in errors
    module          the module whose evaluation mode counts; None where there is none
    core            the transformers model in it, whose layers can be shown; None where there is none
    embed(ids)      word embeddings
    encode(side, inputs, leaf)   what the model makes of the sequences of one side; with word embeddings in place of
                    those of its tokens where a leaf is given
    compare(*encoded)            the scores, (rows,)
`encode` makes the ordinary call of its users, with token ids; a leaf gets in by a hook on the embedding layer.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backlight.adapters.torch_models.temporary_changes import embeddings_replaced
from backlight.errors import InputError


@dataclass(frozen=True, eq=False)
class Inputs:
    """Sequences of one side in a rectangle, as tensors on the model's device, each (rows, columns)."""

    ids: Any
    mask: Any
    types: Any
    places: tuple[Any, Any]  # rows and columns of the tokens that are read


def reads_and_answers(core: Any) -> bool:
    """Return whether a transformers model is one of encoder and decoder, as T5 and BART."""
    return bool(getattr(core.config, "is_encoder_decoder", False))


def embedding_layers(core: Any) -> tuple[Any, ...]:
    """Return the layer of a transformers model that gives word embeddings, and after it that of its decoder, if any.

    Raises:
        InputError: it has none, as CANINE, which hashes characters.
    """
    parts = (core.get_encoder(), core.get_decoder()) if reads_and_answers(core) else (core,)
    try:
        layers = [part.get_input_embeddings() for part in parts]
    except NotImplementedError as error:
        raise InputError(
            f"{type(core).__name__} has no layer of word embeddings: give a function of pairs, which is explained by "
            "measuring"
        ) from error
    return tuple(dict.fromkeys(layers))


class ModuleModel:
    """Base class of models that are modules with an embedding layer; a kind has `read` (see NOTE [A model on PyTorch]).

    Args:
        module: the model.
        core: the transformers model in it.
    """

    sides = 1

    def __init__(self, module: Any, core: Any):
        self.module, self.core, self.name = module, core, type(core).__name__
        self.layer, *_ = self._layers = embedding_layers(core)

    def embed(self, ids: Any) -> Any:
        """Return the word embeddings of ids; (…) -> (…, hidden)."""
        found = self.layer(ids)
        return found[0] if isinstance(found, tuple) else found  # of I-BERT with a scale

    def encode(self, side: int, inputs: Inputs, leaf: Any = None) -> Any:
        """Return what the model makes of sequences (see NOTE [A model on PyTorch])."""
        if leaf is None:
            return self.read(side, inputs)
        with embeddings_replaced(self._layers, inputs, leaf, self.name):
            return self.read(side, inputs)

    def read(self, side: int, inputs: Inputs) -> Any:
        """Return what an ordinary call makes of sequences."""
        raise InputError(f"{type(self).__name__} must say how it reads sequences")

    def compare(self, scores: Any) -> Any:
        """Return the scores, (rows,)."""
        return scores


class Classifier(ModuleModel):
    """A sequence classifier of transformers: the score is one of its logits.

    Args:
        label: which.
        segments: whether it is given segments.
    """

    def __init__(self, module: Any, *, label: int = 0, segments: bool = False):
        super().__init__(module, module)
        self._label, self._segments = label, segments

    def read(self, side: int, inputs: Inputs) -> Any:
        """Return the score of each row."""
        types = {"token_type_ids": inputs.types} if self._segments else {}
        output = self.module(input_ids=inputs.ids, attention_mask=inputs.mask, **types)
        return column_of(output, self._label, len(inputs.ids), self.name)


class AnswerLogit(ModuleModel):
    """A language model that answers with a token: the score is that token's logit, or a difference of two.

    A causal model answers after its last token, one of encoder and decoder, as monoT5, with the decoder's first.

    Args:
        answers: the ids of yes and no, or of one token.
    """

    def __init__(self, module: Any, answers: Sequence[int]):
        super().__init__(module, module)
        self._answers = tuple(answers)
        self._takes = set(inspect.signature(module.forward).parameters)

    def read(self, side: int, inputs: Inputs) -> Any:
        """Return the score of each row, from the logits of its answer."""
        rows, options = len(inputs.ids), {"use_cache": False} if "use_cache" in self._takes else {}
        if reads_and_answers(self.module):
            start = self.module.config.decoder_start_token_id
            options["decoder_input_ids"] = inputs.ids.new_full((rows, 1), start)
            columns = 0
        else:
            columns = inputs.mask.shape[1] - 1 - inputs.mask.flip(1).argmax(1)
        output = self.module(input_ids=inputs.ids, attention_mask=inputs.mask, **options)
        last = logits_in(output, self.name)[range(rows), columns]  # (rows, vocabulary)
        yes, *no = self._answers
        return last[:, yes] - last[:, no[0]] if no else last[:, yes]


class SentencePairs(ModuleModel):
    """A CrossEncoder of sentence-transformers, called as its `predict` calls it.

    Args:
        constants: further features of a call that its preprocessing gives.
        segments: whether segments are among the features.
    """

    def __init__(self, module: Any, *, label: int = 0, constants: Mapping[str, Any], segments: bool):
        super().__init__(module, module.transformers_model)
        self._label, self._constants, self._segments = label, dict(constants), segments

    def read(self, side: int, inputs: Inputs) -> Any:
        """Return the score of each row."""
        features = {**self._constants, "input_ids": inputs.ids, "attention_mask": inputs.mask}
        if self._segments:
            features["token_type_ids"] = inputs.types
        return column_of(self.module(features)["scores"], self._label, len(inputs.ids), self.name)


class EmbeddingFunction:
    """A function from word embeddings and a mask to scores, as captum's methods take one.

    Args:
        function: takes (rows, columns, hidden) and (rows, columns), gives (rows,) or (rows, labels).
        layer: word embeddings of ids.
        name: of the function, for errors.
        label: which column is the score, of several.
    """

    sides, core = 1, None

    def __init__(self, function: Callable, layer: Callable, *, name: str, label: int | None = None):
        self._function, self._layer, self._label = function, layer, label
        self.module = function if hasattr(function, "modules") else None
        self.name = name
        self.layer = layer if hasattr(layer, "num_embeddings") else None

    def embed(self, ids: Any) -> Any:
        """Return the word embeddings of ids; (…) -> (…, hidden)."""
        return self._layer(ids)

    def encode(self, side: int, inputs: Inputs, leaf: Any = None) -> Any:
        """Return the score of each row."""
        embeddings = self._layer(inputs.ids).detach()
        if leaf is not None:
            embeddings = embeddings.index_put(inputs.places, leaf.to(embeddings.dtype))
        return column_of(self._function(embeddings, inputs.mask), self._label, len(embeddings), self.name)

    def compare(self, scores: Any) -> Any:
        """Return the scores, (rows,)."""
        return scores


def column_of(output: Any, label: int | None, rows: int, name: str) -> Any:
    """Return the score of each row from what a model gave.

    Args:
        label: which column, of several; None where there must be one.

    Raises:
        InputError: there is no tensor of a number a row and label in it, or no such label.
    """
    scores = logits_in(output, name)
    if scores.ndim == 1:
        scores = scores[:, None]
    if scores.ndim != 2 or scores.shape[0] != rows:
        raise InputError(
            f"{name} must return a score for each pair, (pairs,) or (pairs, labels), got {tuple(scores.shape)} for "
            f"{rows} pairs: wrap it in a function that does"
        )
    labels = scores.shape[1]
    if label is None and labels > 1:
        raise InputError(f"{name} returns {labels} labels: say which is the score, label=0 to {labels - 1}")
    if labels == 1 and label not in (None, 0):
        raise InputError(f"label must be left out: {name} returns one score, label 0; got {label}")
    if not 0 <= (label or 0) < labels:
        raise InputError(f"label must be from 0 to {labels - 1}, got {label}")
    return scores[:, label or 0]


def logits_in(output: Any, name: str) -> Any:
    """Return the tensor of scores in what a model gave: itself, its `logits` or `scores`, or the one tensor of a tuple.

    Raises:
        InputError: there is none, or more than one.
    """
    for key in ("logits", "scores"):
        found = output.get(key) if isinstance(output, Mapping) else getattr(output, key, None)
        if _is_tensor(found):
            return found
    if _is_tensor(output):
        return output
    if isinstance(output, (tuple, list)) and sum(map(_is_tensor, output)) == 1:
        return next(one for one in output if _is_tensor(one))
    inside = f" of {len(output)}" if isinstance(output, (tuple, list, Mapping)) else ""
    raise InputError(
        f"{name} must return a tensor of scores, or an output with logits, got {type(output).__name__}{inside}: wrap "
        "it in a function that returns the scores"
    )


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and value.is_floating_point()
