"""A bi-encoder: query and document are embedded apart, and the cosine of the two embeddings is the score."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.graph.modes import no_grad
from backlight.models.bert import Bert, BertConfig
from backlight.models.checkpoint import read_json, read_settings, read_weights
from backlight.models.tokens import Batch, Tokenizer, Tokens
from backlight.ops.joining import stack
from backlight.tensor.tensor import Tensor

ENCODERS = {"bert": (BertConfig, Bert)}
HEADLESS = ("BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForNextSentencePrediction")
TOKENS_A_PASS = 2048  # what is run at once: enough to keep the processor busy, little enough to stay near the caches

READ_ALONE: dict[str, Callable[[Batch], Sequence[int]]] = {  # poolings that read one token of a text, and which
    "cls": lambda batch: batch.starts,
    "lasttoken": lambda batch: np.cumsum(batch.lengths) - 1,
}
POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda states: states.mean(0),
    "max": lambda states: states.amax(0),
    "mean_sqrt_len_tokens": lambda states: states.sum(0) / len(states) ** 0.5,
}


@dataclass(frozen=True, eq=False)
class BiEncoder:
    """Scores a document for a query by the cosine of their pooled embeddings.

    Args:
        name: what the model is called in results.
        encoder: gives each token's last hidden state.
        tokenizer: reads texts.
        pooling: how the states of a text become its embedding, a key of `POOLINGS` or `READ_ALONE`.
    """

    name: str
    encoder: Bert
    tokenizer: Tokenizer
    pooling: str = "mean"

    highest_score = 1.0  # of a cosine

    @property
    def score_name(self) -> str:
        """What a score is."""
        return f"cosine of {self.pooling}-pooled embeddings"

    def embed(self, batch: Batch, inputs_embeds: Tensor | None = None) -> Tensor:
        """Return each text's embedding, of length 1.

        Shapes: inputs_embeds (tokens, hidden) -> (texts, hidden)
        """
        if self.pooling in READ_ALONE:
            pooled = self.encoder(batch, inputs_embeds, READ_ALONE[self.pooling](batch))  # (texts, hidden)
        else:
            states = self.encoder(batch, inputs_embeds).split(batch.lengths)
            pooled = stack([POOLINGS[self.pooling](part) for part in states])
        return pooled / pooled.norm(dim=1, keepdim=True)

    def pair_scores(self, batch: Batch, inputs_embeds: Tensor | None = None) -> Tensor:
        """Return the score of each pair in a batch query, document, query, document …

        Shapes: -> (pairs,)
        """
        embeddings = self.embed(batch, inputs_embeds)
        return (embeddings[0::2] * embeddings[1::2]).sum(1)

    def scores(self, query: Tokens, documents: Sequence[Tokens], advance: Callable = lambda done: None) -> np.ndarray:
        """Return the score of each document, without recording.

        Args:
            advance: called with the number of documents done since the last call.
        """
        found = []
        with no_grad():
            (asked,) = self.embed(Batch.of([query])).numpy()
            for some in passes(documents):
                found.append(self.embed(Batch.of(some)).numpy() @ asked)
                advance(len(some))
        return np.concatenate(found) if found else np.empty(0, np.float32)


def passes(texts: Sequence[Tokens], width: Callable[[Tokens], int] = len) -> Iterator[list[Tokens]]:
    """Cut a list of texts into runs of about `TOKENS_A_PASS` tokens, in their order.

    Args:
        width: how many tokens a text brings into the run.
    """
    some, total = [], 0
    for text in texts:
        if some and total + width(text) > TOKENS_A_PASS:
            yield some
            some, total = [], 0
        some.append(text)
        total += width(text)
    if some:
        yield some


def load_ranker(folder: Path, name: str | None = None) -> BiEncoder:
    """Return the bi-encoder in a model folder.

    Args:
        folder: config.json, model.safetensors, tokenizer.json; where present, modules.json, 1_Pooling/config.json and
            sentence_bert_config.json say how texts are read and pooled.
        name: what to call it; by default as the folder.

    Raises:
        InputError: a file is missing or damaged, or the model is of a kind that backlight does not know.
    """
    folder = Path(folder)
    settings = read_settings(folder / "config.json")
    config_class, encoder_class = _encoder_for(folder, settings)
    config = config_class.of(settings)
    _check_prompt(folder)
    return BiEncoder(
        name=name or folder.resolve().name,
        encoder=encoder_class(config, read_weights(folder)),
        tokenizer=_tokenizer_of(folder, config),
        pooling=_pooling_of(folder),
    )


def _tokenizer_of(folder: Path, config: BertConfig) -> Tokenizer:
    """Return the tokeniser, which cuts at the smallest length that one of the files says."""
    reading = read_settings(folder / "sentence_bert_config.json")
    limits = (
        config.max_position_embeddings,
        reading.get("max_seq_length"),
        read_settings(folder / "tokenizer_config.json").get("model_max_length"),
    )
    shortest = min(int(limit) for limit in limits if limit)
    return Tokenizer(folder, shortest, lower_case=bool(reading.get("do_lower_case")))


def _check_prompt(folder: Path) -> None:
    """Raise if the model expects each text to begin with words that backlight would not put there."""
    prompt = read_settings(folder / "config_sentence_transformers.json").get("default_prompt_name")
    if prompt:
        raise InputError(
            f"the model in {folder} puts the prompt {prompt} before each text, which backlight does not do"
        )


def _encoder_for(folder: Path, settings: dict) -> tuple:
    """Return the classes for a model's configuration and encoder."""
    kind, heads = settings.get("model_type"), settings.get("architectures") or []
    if kind not in ENCODERS:
        raise InputError(
            f"the model in {folder} is of an unknown architecture, {kind or 'none named'}: backlight knows "
            f"{', '.join(ENCODERS)}; it cannot run models of other kinds"
        )
    if heads and not set(heads) & set(HEADLESS):
        raise InputError(
            f"the model in {folder} is a {', '.join(heads)}, which has a head of its own: a bi-encoder is one of "
            f"{', '.join(HEADLESS)}; it cannot run models of other kinds"
        )
    return ENCODERS[kind]


def _pooling_of(folder: Path) -> str:
    """Return how the model pools, by the files that sentence-transformers writes: the mean where there are none."""
    place = _modules_of(folder).get("Pooling", "1_Pooling")
    says = read_settings(folder / place / "config.json")
    modes = says.get("pooling_mode") or [
        _OLD_NAMES.get(key, key) for key in says if key.startswith("pooling_mode_") and says[key]
    ]
    modes = [modes] if isinstance(modes, str) else modes or ["mean"]
    known = [*POOLINGS, *READ_ALONE]
    if len(modes) != 1 or modes[0] not in known:
        raise InputError(f"{folder} pools by {' and '.join(modes)}: backlight knows one of {', '.join(known)}")
    return modes[0]


def _modules_of(folder: Path) -> dict[str, str]:
    """Return the modules that sentence-transformers would run one after another, each with its folder."""
    file = folder / "modules.json"
    listed = read_json(file) if file.is_file() else []
    try:
        modules = {module["type"].split(".")[-1]: module["path"] for module in listed}
    except (AttributeError, KeyError, TypeError) as problem:
        raise InputError(f"{file} must list modules, each with a type and a path") from problem
    unknown = set(modules) - {"Transformer", "Pooling", "Normalize"}
    if unknown:
        raise InputError(f"{folder} adds the module {', '.join(sorted(unknown))}, which backlight does not know")
    return modules


_OLD_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_lasttoken": "lasttoken",
}
