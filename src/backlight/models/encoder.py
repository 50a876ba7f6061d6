"""What the encoders of all families share: activations, checked weights, and the record of what went on inside.

NOTE [An encoder]
Each family has a file with a config (`of(settings)` reads config.json and says what it cannot do), an encoder and a
head. An encoder is called as `encoder(batch, inputs_embeds=None, wanted=None, trace=None)` and gives the last hidden
states of texts laid end to end, (tokens, hidden); its `config` says `max_tokens` and `vocab_size`. `embed_words(ids)`
gives the word embeddings that `inputs_embeds` stands for: what the model looks up, before positions, segments, norms
and projections. Tokens may be left out of a text: the others keep their numbers in `batch.positions`, and a layer reads
those and never counts for itself. So a text without some of its tokens gives what a mask over these tokens gives. An
encoder that normalises the last layer's states once more has `finish(states)`, which does that. A head turns the states
of the tokens that it reads into logits, (texts, labels).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from backlight.errors import InputError
from backlight.ops.activations import leaky_relu, relu, relu6, sigmoid
from backlight.ops.gates import gelu, hardswish, mish, silu
from backlight.ops.joining import cat
from backlight.ops.pointwise import tanh
from backlight.ops.selection import clamp
from backlight.ops.softmax import softmax
from backlight.tensor.tensor import Tensor


def _tanh_gelu(x):
    return gelu(x, approximate="tanh")


def _quick_gelu(x):
    return x * sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable] = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": _tanh_gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_accurate": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "gelu_python_tanh": _tanh_gelu,
    "gelu_10": lambda x: clamp(gelu(x), -10, 10),
    "quick_gelu": _quick_gelu,
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


def attend(
    query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int], scale: float, biases: Sequence | None = None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return softmax(query · keyᵀ · scale + bias) · value for each text, and the softmax: all of it in the graph.

    Shapes: query, key, value (tokens, heads, dim) -> (tokens, heads · dim), texts × (heads, queries, keys)

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
    return cat(seen), tuple(attentions)


_FLOATS = ("float32", "float64", "float16", "bfloat16")


class Weights:
    """The arrays of a checkpoint, each checked as it is taken.

    Args:
        arrays: by name; those that nobody takes are left alone.
        family: what the model is, for errors.
        prefixes: what names may begin with in the checkpoint, beside nothing.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], family: str, prefixes: Sequence[str] = ()):
        self._arrays, self._family, self._prefixes = arrays, family, ("", *prefixes)

    def __contains__(self, name: str) -> bool:
        return self._found(name) is not None

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

    def _found(self, name: str) -> np.ndarray | None:
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        keys = (prefix + key for key in (name, old) for prefix in self._prefixes)
        return next((self._arrays[key] for key in keys if key in self._arrays), None)


def check_sizes(config, names: Sequence[str]) -> None:
    """Raise unless each of these settings is a whole number, 1 or more."""
    for name in names:
        size = getattr(config, name)
        if not isinstance(size, int) or size < 1:
            raise InputError(f"{name} must be a whole number, 1 or more, got {size!r}")


def check_heads(hidden: int, heads: int) -> None:
    """Raise unless a hidden state can be cut into heads of one size."""
    if hidden % heads:
        raise InputError(f"hidden_size must be a multiple of num_attention_heads, got {hidden} and {heads}")


def check_activation(name: str, setting: str = "hidden_act") -> None:
    """Raise unless an activation is known."""
    if name not in ACTIVATIONS:
        raise InputError(f"{setting} must be one of {', '.join(ACTIVATIONS)}, got {name}")
