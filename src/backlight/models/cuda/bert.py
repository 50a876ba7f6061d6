"""BERT's encoder on a GPU: the vectors that a score reads, and the gradient of scores for word embeddings.

NOTE [Written out]
No graph is recorded: `run` keeps of each layer what `gradient` needs, and the two stand side by side. Biases are added
where a product is read next: in attention, in the activation, in a norm. Where the score reads one token a text, the
last layer works on these alone after its attention, as on the processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.errors import InputError
from backlight.kernels.cuda.device import ACTIVATIONS, DIMS, Device, attention_blocks
from backlight.models.encoders.bert import Bert
from backlight.models.tokens import Batch


@dataclass(frozen=True, eq=False)
class Read:
    """What a score reads of each text: Σ weight · last state.

    Args:
        weights: (tokens,).
        alone: whether that is the state of one token a text.
    """

    weights: np.ndarray
    alone: bool


@dataclass(frozen=True, eq=False)
class Kept:
    """What a run keeps for its gradient, on the device."""

    batch: "Uploaded"
    embedded: tuple[Any, Any]  # normalised embeddings, 1 / σ
    layers: list[tuple]


@dataclass(frozen=True, eq=False)
class Uploaded:
    """A batch on the device."""

    tokens: int
    texts: int
    starts: Any
    blocks: Any
    weights: Any
    alone: bool


class CudaBert:
    """Runs BERT's encoder, or another of its shape, on a device (see NOTE [Written out]).

    Args:
        encoder: whose weights are copied to the device.
        device: see NOTE [A device] in kernels/cuda/device.py.

    Raises:
        InputError: there is no kernel for its activation, for the size of its heads, or for shorter embeddings.
    """

    def __init__(self, encoder: Bert, device: Device):
        config, arrays = encoder.config, encoder.arrays()
        self.encoder, self.device, self.width = encoder, device, config.hidden_size
        self.heads = config.num_attention_heads
        self._dim, self._eps = self.width // self.heads, float(config.layer_norm_eps)
        self._kind = ACTIVATIONS.get(config.hidden_act)
        if self._kind is None:
            raise InputError(f"on cuda hidden_act must be one of {', '.join(ACTIVATIONS)}, got {config.hidden_act}")
        if self._dim not in DIMS:
            raise InputError(f"on cuda a head must have 8, 16, 24 … 128 numbers, got {self._dim}")
        if config.embedding_size != self.width:
            raise InputError(
                f"on cuda embeddings must have the size of hidden states, {self.width}, got {config.embedding_size}"
            )
        with device.active():
            self._launch = device.compiled(self._dim)
            self._take(arrays)

    def _take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy the weights to the device."""
        self._tables = [
            self._vector(arrays[name]) if name in arrays else None
            for name in (Bert.words, "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight")
        ]
        self._norm = [self._vector(arrays[f"embeddings.LayerNorm.{kind}"]) for kind in ("weight", "bias")]
        self._layers = [self._taken(arrays, f"encoder.layer.{n}") for n in range(self.encoder.config.num_hidden_layers)]

    def _vector(self, array: np.ndarray) -> Any:
        return self.device.xp.asarray(np.ascontiguousarray(array, np.float32))

    def _taken(self, arrays: Mapping[str, np.ndarray], layer: str) -> dict[str, Any]:
        """Return the weights of a layer on the device, by short names."""
        names = {"qkv": "attention.self.qkv", "dense": "attention.output.dense", "inner": "intermediate.dense"}
        names |= {"outer": "output.dense", "norm": "attention.output.LayerNorm", "last_norm": "output.LayerNorm"}
        found = {}
        for ours, name in names.items():
            weight = arrays[f"{layer}.{name}.weight"]
            found[ours] = self.device.weight(weight) if weight.ndim == 2 else self._vector(weight)
            found[f"{ours}_bias"] = self._vector(arrays[f"{layer}.{name}.bias"])
        return found

    def run(
        self, batch: Batch, read: Read, words: np.ndarray | None = None, *, keep: bool = False
    ) -> tuple[np.ndarray, Kept | None]:
        """Return what a score reads of each text, and what `gradient` needs of the run.

        Args:
            words: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).
            keep: whether a gradient will be computed.

        Shapes: -> (texts, hidden)

        Raises:
            InputError: an id, a position or a segment is beyond the model's tables.
        """
        self.encoder.check_ids(batch.ids)
        self.encoder.check_places(batch)
        with self.device.active():
            return self._run(batch, read, words, keep)

    def _run(self, batch: Batch, read: Read, words: np.ndarray | None, keep: bool) -> tuple[np.ndarray, Kept | None]:
        on = self._uploaded(batch, read)
        hidden, embedded = self._embedded(batch, words)
        layers = []
        for layer in self._layers:
            hidden, own = self._layer(hidden, layer, on, on.alone and layer is self._layers[-1])
            if keep:
                layers.append(own)
        found = hidden if on.alone else self._pool(hidden, on)
        kept = Kept(on, embedded, layers) if keep else None
        return self.device.on_host(found), kept

    def gradient(self, kept: Kept, grad: np.ndarray) -> np.ndarray:
        """Return the gradient for word embeddings, given that for what the score reads of each text.

        Shapes: (texts, hidden) -> (tokens, hidden)
        """
        on = kept.batch
        with self.device.active():
            found = self._vector(grad) if on.alone else self._pool_gradient(self._vector(grad), on)
            for layer, own in zip(self._layers[::-1], kept.layers[::-1]):
                found = self._layer_gradient(found, layer, own, on, on.alone and layer is self._layers[-1])
            return self.device.on_host(self._norm_gradient(found, *kept.embedded, self._norm[0]))

    def _uploaded(self, batch: Batch, read: Read) -> Uploaded:
        xp = self.device.xp
        return Uploaded(
            tokens=len(batch.ids),
            texts=len(batch.lengths),
            starts=xp.asarray(np.cumsum([0, *batch.lengths]).astype(np.int32)),
            blocks=xp.asarray(attention_blocks(batch.lengths)),
            weights=self._vector(read.weights),
            alone=read.alone,
        )

    def _embedded(self, batch: Batch, words: np.ndarray | None) -> tuple[Any, tuple[Any, Any]]:
        """Return what the first layer is given, and what the gradient needs."""
        xp, tokens = self.device.xp, len(batch.ids)
        ids, segments = xp.asarray(batch.ids.astype(np.int32)), xp.asarray(batch.type_ids.astype(np.int32))
        positions = xp.asarray((batch.positions + self.encoder.config.first_position).astype(np.int32))
        table, places, kinds = self._tables
        total = self._empty(tokens, self.width)
        given = (table, ids) if words is None else (self._vector(words), None)
        self._launch("embed", (tokens, 1), *given, places, positions, kinds, segments, total, self.width)
        hidden, inverse = self._normalised(total, None, None, *self._norm)
        return hidden, (total, inverse)

    def _layer(self, hidden: Any, layer: Mapping[str, Any], on: Uploaded, picks: bool) -> tuple[Any, tuple]:
        """Return the states after a layer, of the tokens that are read if it `picks`, and what the gradient needs."""
        product = self.device.product
        qkv = product(hidden, layer["qkv"])
        seen, logs = self._empty(on.tokens, self.width), self._empty(on.tokens, self.heads)
        grid, scale = (len(on.blocks), self.heads), self._dim**-0.5
        self._launch("attention", grid, qkv, layer["qkv_bias"], on.blocks, seen, logs, self.heads, scale)
        some, before = (self._pool(seen, on), self._pool(hidden, on)) if picks else (seen, hidden)
        first = product(some, layer["dense"])
        middle, inverse = self._normalised(first, layer["dense_bias"], before, layer["norm"], layer["norm_bias"])
        inner = product(middle, layer["inner"])
        active = self.device.xp.empty_like(inner)
        rows, width = inner.shape
        self._launch("add_activation", (rows, 1), inner, layer["inner_bias"], active, width, self._kind)
        last = product(active, layer["outer"])
        norm = layer["last_norm"], layer["last_norm_bias"]
        found, last_inverse = self._normalised(last, layer["outer_bias"], middle, *norm)
        return found, (qkv, seen, logs, first, inverse, inner, last, last_inverse)

    def _layer_gradient(self, grad: Any, layer: Mapping[str, Any], own: tuple, on: Uploaded, picks: bool) -> Any:
        """Return the gradient for the states before a layer."""
        qkv, seen, logs, first, inverse, inner, last, last_inverse = own
        through = self.device.product_gradient
        of_middle = self._norm_gradient(grad, last, last_inverse, layer["last_norm"])
        of_inner = through(of_middle, layer["outer"])
        rows, width = of_inner.shape
        self._launch("activation_gradient", (rows, 1), of_inner, inner, width, self._kind)
        through(of_inner, layer["inner"], of_middle)
        of_hidden = self._norm_gradient(of_middle, first, inverse, layer["norm"])
        of_seen = through(of_hidden, layer["dense"])
        if picks:
            of_seen, of_hidden = self._pool_gradient(of_seen, on), self._pool_gradient(of_hidden, on)
        of_qkv, deltas = self.device.xp.empty_like(qkv), self.device.xp.empty_like(logs)
        grid, ends = (len(on.blocks), self.heads), (self.heads, self._dim**-0.5)
        given = of_seen, qkv, layer["qkv_bias"], on.blocks
        self._launch("attention_gradient_queries", grid, *given, seen, logs, of_qkv, deltas, *ends)
        self._launch("attention_gradient_keys", grid, *given, logs, deltas, of_qkv, *ends)
        return through(of_qkv, layer["qkv"], of_hidden)

    def _normalised(self, x: Any, bias: Any, residual: Any, weight: Any, shift: Any) -> tuple[Any, Any]:
        """Return the norm of x + bias + residual, and 1 / σ; x becomes what the gradient needs."""
        out, inverse = self.device.xp.empty_like(x), self._empty(len(x))
        given = x, bias, residual, weight, shift
        self._launch("add_layer_norm", (len(x), 1), *given, out, inverse, self.width, self._eps)
        return out, inverse

    def _norm_gradient(self, grad: Any, normalised: Any, inverse: Any, weight: Any) -> Any:
        out = self.device.xp.empty_like(grad)
        self._launch("layer_norm_gradient", (len(grad), 1), grad, normalised, weight, inverse, out, self.width)
        return out

    def _pool(self, states: Any, on: Uploaded) -> Any:
        out = self._empty(on.texts, self.width)
        self._launch("pool", (on.texts, 1), states, on.starts, on.weights, out, self.width)
        return out

    def _pool_gradient(self, grad: Any, on: Uploaded) -> Any:
        out = self._empty(on.tokens, self.width)
        self._launch("pool_gradient", (on.texts, 1), grad, on.starts, on.weights, out, self.width)
        return out

    def _empty(self, *shape: int) -> Any:
        return self.device.xp.empty(shape, np.float32)
