"""What the encoders of all families share: activations, the way through the layers, and the record of what went on.

NOTE [An encoder]
Each family has a file with a config (`of(settings)` reads config.json and says what it cannot do), an encoder and a
head. An encoder is called as `encoder(batch, inputs_embeds=None, wanted=None, trace=None)` and gives the last hidden
states of texts laid end to end, (tokens, hidden); its `config` says `max_tokens` and `vocab_size`. `embed_words(ids)`
gives the word embeddings that `inputs_embeds` stands for: what the model looks up, before positions, segments, norms
and projections. Tokens may be left out of a text: the others keep their numbers in `batch.positions`, and a layer reads
those and never counts for itself. So a text without some of its tokens gives what a mask over these tokens gives. An
encoder that normalises the last layer's states once more does that in `finish(states)`; others give them back as they
are. A head turns the states of the tokens that it reads into logits, (texts, labels).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from backlight.errors import InputError
from backlight.formats.schema import with_checked_fields
from backlight.formats.strict_json import Bounds
from backlight.models.checkpoint import Weights
from backlight.models.tokens import Batch
from backlight.ops.elementwise.activations import leaky_relu, relu, relu6, sigmoid
from backlight.ops.elementwise.gated_activations import gelu, hardswish, mish, silu
from backlight.ops.elementwise.transcendental import tanh
from backlight.ops.elementwise.where_clamp import clamp
from backlight.ops.indexing.embedding import embedding
from backlight.ops.indexing.index_selection import index_select
from backlight.ops.nn.linear import linear
from backlight.ops.nn.normalization import layer_norm
from backlight.ops.nn.softmax import softmax
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


def _tanh_gelu(x: Tensor) -> Tensor:
    return gelu(x, approximate="tanh")


Rows = Sequence[int] | None  # of a row of tokens; None for all
Shapes = dict[str, tuple[int, ...]]  # of weights by name
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": _tanh_gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_accurate": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "gelu_python_tanh": _tanh_gelu,
    "gelu_10": lambda x: clamp(gelu(x), -10, 10),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "hardswish": hardswish,
    "leaky_relu": leaky_relu,
    "linear": lambda x: x,
    "mish": mish,
    "relu": relu,
    "relu2": lambda x: relu(x) ** 2,
    "relu6": relu6,
    "sigmoid": sigmoid,
    "silu": silu,
    "swish": silu,
    "tanh": tanh,
}


@dataclass(eq=False)
class Trace:
    """What went on inside an encoder: give one to a call, and it is filled, with the graph that made it.

    Args:
        states: the hidden states that the first layer was given, then those after each layer, (tokens, hidden).
        attentions: for each layer a tuple with the attention of each text, (heads, queries, keys).
    """

    states: list[Tensor] = field(default_factory=list)
    attentions: list[tuple[Tensor, ...]] = field(default_factory=list)

    def begin(self, layers: int) -> bool:
        """Return whether the last layer must run for all tokens: its states are all kept."""
        return True

    def after(self, number: int, hidden: Tensor) -> Tensor:
        """Keep the states after a layer, and return them."""
        self.states.append(hidden)
        return hidden

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        lengths: Sequence[int],
        scale: float,
        biases: Sequence | None = None,
    ) -> Tensor:
        """Return softmax(query · keyᵀ · scale + bias) · value for each text, and keep the softmax: all in the graph.

        Shapes: query, key, value (tokens, heads, dim) -> (tokens, heads · dim)

        Args:
            lengths: how many tokens each text has.
            biases: for each text what is added to its scores, (heads or 1, queries, keys).
        """
        attentions, seen = [], []
        by_text = zip(*(part.transpose(0, 1).split(tuple(lengths), 1) for part in (query, key, value)))
        for number, (q, k, v) in enumerate(by_text):
            scores = (q * scale) @ k.mT
            attentions.append(softmax(scores if biases is None else scores + biases[number], -1))
            seen.append((attentions[-1] @ v).transpose(0, 1).flatten(1))
        self.attentions.append(tuple(attentions))
        return cat(seen)


@dataclass(eq=False)
class Cut:
    """Where gradients end: the state after a layer becomes a leaf. Give one to a call as its `trace`, and it is filled.

    Nothing before the leaf is recorded, and all layers run as in an ordinary call.

    Args:
        layer: after which layer, 0 for what the first layer is given; half of the layers, rounded down, for None.
        layers: how many layers there are.
        states: the leaf, (tokens, hidden).
    """

    layer: int | None = None
    layers: int = 0
    states: Tensor | None = None

    def begin(self, layers: int) -> bool:
        """Choose the layer, and return whether the last one must run for all tokens.

        Raises:
            InputError: there is no such layer.
        """
        self.layers, self.layer = layers, chosen_layer(self.layer, layers)
        return self.layer == layers

    def after(self, number: int, hidden: Tensor) -> Tensor:
        """Return the states after a layer, as the leaf if it is the one."""
        if number != self.layer:
            return hidden
        self.states = hidden.detach().requires_grad_()
        return self.states


@dataclass(eq=False)
class KeyWeights:
    """A weight of 1 for each token in every attention, to differentiate for: give one to a call as its `trace`.

    All layers run as in an ordinary call, of an encoder that `weighs_keys`. The states that the first layer is given
    become a leaf; nothing before them is recorded.

    Args:
        logs: the logarithms of the weights, a leaf; (tokens,). At 1 the gradients of both are the same.
        first: the states that the first layer is given, a leaf; (tokens, hidden).
        last: the states that the call returns, (tokens, hidden); those of the tokens that are wanted alone, where it
            says which.
    """

    logs: Tensor | None = None
    first: Tensor | None = None
    last: Tensor | None = None

    def begin(self, layers: int) -> bool:
        """Return whether the last layer must run for all tokens: no."""
        return False

    def after(self, number: int, hidden: Tensor) -> Tensor:
        """Keep the states after a layer, and return them; the first as a leaf."""
        if number == 0:
            hidden = self.first = hidden.detach().requires_grad_()
            self.logs = hidden.new_zeros(len(hidden), requires_grad=True)
        self.last = hidden
        return hidden


def chosen_layer(layer: int | None, layers: int) -> int:
    """Return the layer that is meant: half of them, rounded down, for None. Raises InputError: there is no such one."""
    chosen = layers // 2 if layer is None else layer
    if not 0 <= chosen <= layers:
        raise InputError(f"layer must be from 0 to {layers}, got {layer}")
    return chosen


Inner = Trace | KeyWeights | None  # what attention records, or is weighed by


class Weighted:
    """Frozen weights by name, and the steps that read them: what encoders and heads are built of.

    Args:
        arrays: the weights.
        activation: a key of `ACTIVATIONS`.
        eps: what norms add to a variance.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], activation: str = "linear", eps: float = 0.0):
        self._weights = {name: from_numpy(array) for name, array in arrays.items()}
        self._activation, self._eps = ACTIVATIONS[activation], eps

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that are computed with, by the names that checkpoints give them."""
        return dict(self._weights)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def _normalised(self, x: Tensor, name: str) -> Tensor:
        weight = self._weights[f"{name}.weight"]
        return layer_norm(x, weight.shape, weight, self._weights.get(f"{name}.bias"), self._eps)


class EncoderConfig:
    """The sizes of an encoder, as `config.json` names them: the fields of a family's dataclass, with their rules.

    config.json must name the fields that have no default.
    """

    family: ClassVar[str]
    prefix: ClassVar[str] = "model."  # of the encoder's weights in a checkpoint with a head
    names: ClassVar[Mapping[str, str]] = {}  # parts of the names of weights, and what the family's checkpoints say
    activation_of: ClassVar[tuple[str, str]] = ("hidden_act", "layer_norm_eps")  # the fields of activation and epsilon

    @classmethod
    def of(cls, settings: Mapping) -> Self:
        """Return the sizes that a config.json says.

        Raises:
            InputError: a size is missing, or a setting is not supported by this encoder.
        """
        missing = [one.name for one in fields(cls) if one.default is MISSING and settings.get(one.name) is None]
        if missing:
            raise InputError(f"config.json must say {', '.join(missing)}, and does not: it is not a {cls.family}'s")
        said = {one.name: settings[one.name] for one in fields(cls) if settings.get(one.name) is not None}
        config = with_checked_fields(cls, said)
        config._check(settings)
        return config

    @property
    def max_tokens(self) -> int:
        """How many tokens a text may have."""
        return self.max_position_embeddings

    def name_of(self, weight: str) -> str:
        """Return what the family's checkpoints call a weight."""
        for part, instead in self.names.items():
            weight = weight.replace(part, instead)
        return weight

    def _check(self, settings: Mapping) -> None:
        """Raise if a setting is not supported."""


class Encoder(Weighted, ABC):
    """The way through the layers of every family (see NOTE [An encoder]), with frozen weights.

    A family defines its weights (`shapes_of`), the input of the first layer (`_embedded`), attention (`_attention`) and
    the rest of a layer (`_after`), and optionally what all layers share (`_around`) and what follows the last one
    (`finish`).

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name, with or without the family's prefix; others are left alone.

    Raises:
        InputError: a weight is missing or has another shape than the sizes ask for.
    """

    words: ClassVar[str]  # the weight that holds the word embeddings
    weighs_keys: ClassVar[bool] = False  # whether attention can weigh its keys (see `KeyWeights`)

    def __init__(self, config: EncoderConfig, weights: Mapping[str, np.ndarray]):
        arrays = self._taken(config, Weights(weights, config.family, (config.prefix,)))
        activation, eps = (getattr(config, name) for name in config.activation_of)
        super().__init__(arrays, activation, eps)
        self.config, self._dtype = config, arrays[self.words].dtype

    @staticmethod
    @abstractmethod
    def shapes_of(config: EncoderConfig) -> Shapes:
        """Return the name and shape of each weight."""

    def _taken(self, config: EncoderConfig, weights: Weights) -> dict[str, np.ndarray]:
        """Return what the encoder computes with."""
        return {name: weights.take(config.name_of(name), *shape) for name, shape in self.shapes_of(config).items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        return self.parameters()

    def embed_words(self, ids: np.ndarray) -> Tensor:
        """Return what the model looks up for tokens, before positions, segments, norms and projections.

        Shapes: ids (tokens,) -> (tokens, hidden), or (tokens, embedding) where embeddings have a size of their own

        Raises:
            InputError: an id is beyond the vocabulary.
        """
        self.check_ids(ids)
        return embedding(self._weights[self.words], from_numpy(ids))

    def check_ids(self, ids: np.ndarray) -> None:
        """Raise if an id is beyond the vocabulary."""
        words = self._weights[self.words]
        if ids.max(initial=0) >= len(words):
            raise InputError(
                f"the tokenizer's ids must be below the model's {len(words)} words, got {ids.max()}: tokenizer.json "
                "and the weights are not of one model"
            )

    def __call__(
        self,
        batch: Batch,
        inputs_embeds: Tensor | None = None,
        wanted: Sequence[int] | None = None,
        trace: Trace | Cut | KeyWeights | None = None,
    ) -> Tensor:
        """Return the last hidden states of texts laid end to end.

        Args:
            batch: the texts.
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, as `embed_words` gives them.
            wanted: places of the tokens whose states are requested, in the order of the result; all by default. The
                last layer works on these alone.
            trace: is filled with the hidden states and attentions of each layer; all layers then work on all tokens.
                The last of the states are those that the call returns: normalised, where the family does that. Or
                where gradients end, or the weights of the keys.

        Shapes: -> (tokens, hidden)

        Raises:
            InputError: a text is longer than the model has positions, or has a segment that the model does not know.
        """
        layers = self.config.num_hidden_layers
        whole = trace is not None and trace.begin(layers)
        inner = None if isinstance(trace, Cut) else trace
        after = _unchanged if trace is None else trace.after
        hidden = self._embedded(batch, self.embed_words(batch.ids) if inputs_embeds is None else inputs_embeds)
        hidden, around = after(0, hidden), self._around(batch)
        for number in range(1, layers + 1):
            rows = wanted if number == layers and not whole else None
            hidden = self._layer(hidden, number - 1, batch, around, rows, inner)
            hidden = after(number, self.finish(hidden) if number == layers else hidden)
        return picked(hidden, wanted) if whole else hidden

    def first_states(self, batch: Batch) -> Tensor:
        """Return what the first layer is given: words at their positions; -> (tokens, hidden)."""
        return self._embedded(batch, self.embed_words(batch.ids))

    def finish(self, states: Tensor) -> Tensor:
        """Do to states what is done to those of the last layer, if anything; (tokens, hidden) -> the same."""
        return states

    def _layer(self, hidden: Tensor, number: int, batch: Batch, around: Any, rows: Rows, trace: Inner) -> Tensor:
        """Run a layer for some rows, or all; (tokens, hidden) -> (rows, hidden)."""
        seen = self._attention(hidden, number, batch, around, trace)
        return self._after(picked(seen, rows), picked(hidden, rows), number)

    @abstractmethod
    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        """Return what the first layer is given; (tokens, embedding) -> (tokens, hidden)."""

    def _around(self, batch: Batch):
        """Return what all layers know of where tokens stand."""

    @abstractmethod
    def _attention(self, hidden: Tensor, number: int, batch: Batch, around: Any, trace: Inner) -> Tensor:
        """Let each token look at its text; (tokens, hidden) -> (tokens, heads · dim)."""

    @abstractmethod
    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        """Work on what each token saw, alone; (tokens, heads · dim), (tokens, hidden) -> (tokens, hidden)."""


def _unchanged(number: int, hidden: Tensor) -> Tensor:
    return hidden


def picked(states: Tensor, rows: Rows) -> Tensor:
    """Return some rows of states; all, for None."""
    return states if rows is None else index_select(states, 0, from_numpy(np.asarray(rows, np.int64)))


def check_positions(batch: Batch, limit: int) -> None:
    """Raise if a token stands beyond the positions that a model knows."""
    if batch.positions.max(initial=0) >= limit:
        raise InputError(f"a text must have at most {limit} tokens, got {batch.positions.max() + 1}: cut it first")


Size = Annotated[int, Bounds(1, le=2**31 - 1, words="a whole number, 1 or more")]
Layers = Annotated[int, Bounds(1, le=10_000, words="a whole number, 1 or more")]
Epsilon = Annotated[float, Bounds(0, le=1, words="a number from 0 to 1")]


def check_heads(hidden: int, heads: int) -> None:
    """Raise unless a hidden state can be cut into heads of one size."""
    if hidden % heads:
        raise InputError(f"hidden_size must be a multiple of num_attention_heads, got {hidden} and {heads}")


def check_activation(name: str, setting: str = "hidden_act") -> None:
    """Raise unless an activation is known."""
    if name not in ACTIVATIONS:
        raise InputError(f"{setting} must be one of {', '.join(ACTIVATIONS)}, got {name}")
