"""DecompX: each hidden state is carried through the layers as a sum of parts, one for each token of the input.

With x(i, k) the part of token i's state that came from token k, a layer with weights W, V, O and attention A does
    attention     x(i, k) ← Σ_heads Σ_j A(i, j) · x(j, k) · V · O + share of the bias
    activation    x(i, k) ← x(i, k) · f(x(i)) / x(i), with x(i) = Σ_k x(i, k)
    layer norm    x(i, k) ← (x(i, k) − mean x(i, k)) / σ(x(i)) · γ + share of β
    linear        x(i, k) ← x(i, k) · W + share of the bias
A bias b is shared out by |b · x(i, k)|. No gradient is taken, and no token is missing anywhere: the parts of the logit
add up to the logit.

Source: Modarressi, Fayyaz, Aghazadeh, Yaghoobzadeh, Pilehvar, DecompX: Explaining Transformers Decisions by Propagating
Token Decomposition, 2023, arXiv:2306.02873.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import check_same_scores, check_values
from backlight.kernels.linalg.matrix_products import matmul
from backlight.models.bi_encoder import BiEncoder
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.bert import Bert, BertConfig, BertHead
from backlight.models.encoders.encoder import ACTIVATIONS
from backlight.models.encoders.families import FAMILIES
from backlight.models.encoders.two_streams import TwoStreamBert, Views
from backlight.models.fused import FusedCrossEncoder
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import PYTORCH, Inside, Progress, Scorer, no_progress
from backlight.tensor.creation import from_numpy

MEANING = "the token's part of the score, carried forward through every layer"
NUMBERS_AT_ONCE = 1 << 23  # of the widest array of parts: 32 MiB in float32


def decompx(ranker: Scorer, pairs: Sequence[Pair], *, progress: Progress = no_progress) -> list[Attribution]:
    """Return each token's contribution to the score, in units of the score; contributions sum to the score.

    A pair of n tokens costs about as much as n forward passes. A token's position and segment embeddings count as part
    of the token. Arguments as in NOTE [A method]; the model is a cross-encoder or bi-encoder of BERT's architecture on
    backlight's engine.

    Raises:
        InputError: the model has another architecture, or uses max pooling.
        RuntimeError: the score differs from that of the ordinary call, or contributions are not finite.
    """
    encoder = getattr(ranker, "encoder", None)
    if not isinstance(encoder, (Bert, TwoStreamBert)):
        raise InputError(f"decompx must follow every step of a model, {_why_not(ranker, pairs)}")
    explained = []
    for pair in pairs:
        batch = PairBatch.of([pair])
        inside = ranker.inside(batch)
        values = _parts_of_score(ranker, batch, inside).astype(np.float64)
        check_same_scores(inside.scores, ranker.score(batch), [pair])
        check_values(values, pair.name, "the decomposition of the score")
        score = float(inside.scores[0])
        baseline = "nothing: the parts make the score"
        recipe = Recipe("decompx", MEANING, signed=True, baseline=baseline, passes=len(pair) + 2.0)
        explained.append(attribute_pair(pair, values, recipe, ranker.name, score, float(values.sum()) - score))
        progress(1)
    return explained


def _why_not(ranker: Scorer, pairs: Sequence[Pair]) -> str:
    """Return why a model's steps cannot be followed, and what to do."""
    execution = getattr(ranker, "execution", None)  # a scorer of one's own may have none
    ran = execution and execution(pairs, gradients=False)
    if ran is None or ran.engine != PYTORCH:
        return f"and knows those of BERT's shape; {ranker.name} is of another: take another method"
    module = getattr(ranker.model, "module", ranker.model)
    known = {name for one in FAMILIES.values() if one.encoder is Bert for name in (*one.classifiers, *one.headless)}
    remedy = "take another method"
    parts = module.modules() if hasattr(module, "modules") else ()
    if any(type(part).__name__ in known for part in parts):
        remedy = "load its folder with Reranker.from_pretrained(folder), which runs it on backlight's engine"
    return f"which backlight's own engine shows; {ranker.name} runs on PyTorch: {remedy}"


def _parts_of_score(ranker: CrossEncoder | BiEncoder, batch: PairBatch, inside: Inside) -> np.ndarray:
    """Return what each token contributes to the score, (tokens,)."""
    if isinstance(ranker, FusedCrossEncoder):
        return _parts_of_fused(ranker, batch, inside)
    states = np.split(inside.states[0], np.cumsum(batch.lengths)[:-1])
    pooling = ranker.head.reads if hasattr(ranker, "head") else ranker.pooling
    texts = [
        _parts_of_text(ranker.encoder, state, [layer[number] for layer in inside.attentions], pooling)
        for number, state in enumerate(states)
    ]
    if hasattr(ranker, "head"):
        return _through_head(texts[0][None], ranker.head, ranker.label)
    return _of_cosine(*texts)


def _parts_of_fused(ranker: FusedCrossEncoder, batch: PairBatch, inside: Inside) -> np.ndarray:
    """Return what each token contributes to the logit and to the cosine, together; (tokens,)."""
    encoder, size = ranker.encoder, ranker.encoder.config.hidden_size
    (state, *_), layers = inside.states, [layer[0] for layer in inside.attentions]  # (heads, tokens, tokens)
    joint, apart = ([layer[heads] for layer in layers] for heads in encoder.streams_of_heads)
    logit = _parts_of_text(encoder.joint, state[:, :size], joint, ranker.head.reads)
    query, document = Views.of(batch).alone.lengths
    texts = [
        _parts_of_text(encoder.apart, state[own, size:], [layer[:, own, own] for layer in apart], "mean")
        for own in (slice(query), slice(query, query + document))
    ]
    parts = _through_head(logit[None], ranker.head, ranker.label)
    with no_grad():
        share = ranker.head.cosine_term(from_numpy(parts.sum(keepdims=True)), from_numpy(np.ones(1, np.float32)))
    return parts + _of_cosine(*texts) * share.numpy()


def _parts_of_text(encoder: Bert, start: np.ndarray, attentions: Sequence[np.ndarray], pooling: str) -> np.ndarray:
    """Return the pooled state of a text as parts, one a token; (tokens, hidden) -> (tokens, hidden)."""
    tokens = len(start)
    if pooling not in _READ:
        raise InputError(f"decompx must follow sums, and {pooling} pooling is none: take another method")
    weights = _READ[pooling](tokens)  # (tokens,): how much of each token's last state the model reads
    rows = np.flatnonzero(weights)
    parts = np.zeros((tokens, *start.shape), start.dtype)  # (tokens, parts, hidden)
    parts[np.arange(tokens), np.arange(tokens)] = start
    arrays, last = encoder.arrays(), len(attentions) - 1
    for number, attention in enumerate(attentions):
        wanted = rows if number == last else np.arange(tokens)
        parts = _layer(parts, attention, wanted, _Layer(arrays, f"encoder.layer.{number}", encoder.config))
    return np.tensordot(weights[rows].astype(parts.dtype), parts, 1)


_READ: dict[str, Callable[[int], np.ndarray]] = {
    "cls": lambda tokens: np.eye(tokens)[0],
    "lasttoken": lambda tokens: np.eye(tokens)[-1],
    "mean": lambda tokens: np.full(tokens, 1 / tokens),
    "mean_sqrt_len_tokens": lambda tokens: np.full(tokens, tokens**-0.5),
}


class _Layer:
    """The weights of one layer by their short names."""

    def __init__(self, arrays: dict[str, np.ndarray], name: str, config: BertConfig):
        self._arrays, self._name, self.config = arrays, name, config

    def __call__(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Return weight and bias."""
        return self._arrays[f"{self._name}.{part}.weight"], self._arrays[f"{self._name}.{part}.bias"]


def _layer(parts: np.ndarray, attention: np.ndarray, wanted: np.ndarray, layer: _Layer) -> np.ndarray:
    """Carry parts through a layer for the tokens wanted; (tokens, parts, hidden) -> (wanted, parts, hidden)."""
    seen = _attended(parts, attention[:, wanted], layer)
    hidden = _normalised(seen + parts[wanted], *layer("attention.output.LayerNorm"), layer.config.layer_norm_eps)
    at_once = max(1, NUMBERS_AT_ONCE // (parts.shape[1] * layer.config.intermediate_size))
    for first in range(0, len(hidden), at_once):
        some = hidden[first : first + at_once]
        inner = _linear(some, *layer("intermediate.dense"))  # (some, parts, intermediate)
        inner *= _ratio(inner.sum(1, keepdims=True), layer.config.hidden_act)
        some += _linear(inner, *layer("output.dense"))
    return _normalised(hidden, *layer("output.LayerNorm"), layer.config.layer_norm_eps)


def _attended(parts: np.ndarray, attention: np.ndarray, layer: _Layer) -> np.ndarray:
    """Carry parts through attention; attention (heads, wanted, tokens) -> (wanted, parts, hidden)."""
    heads, wanted, tokens = attention.shape
    (joined, biases), (out, out_bias) = layer("attention.self.qkv"), layer("attention.output.dense")
    size = parts.shape[2]
    values = _product(parts, joined[2 * size :])  # (tokens, parts, hidden)
    seen = np.empty((wanted, tokens, size), parts.dtype)
    for head in range(heads):
        here = slice(head * size // heads, (head + 1) * size // heads)
        own = np.ascontiguousarray(values[..., here]).reshape(tokens, -1)  # (tokens, parts · dim)
        seen[..., here] = matmul(np.ascontiguousarray(attention[head]), own).reshape(wanted, tokens, -1)
    # rows of attention add up to 1, so the values' bias arrives in full
    return _with_bias(_product(seen, out), out @ biases[2 * size :] + out_bias)


def _product(parts: np.ndarray, weight: np.ndarray) -> np.ndarray:
    rows = np.ascontiguousarray(parts).reshape(-1, parts.shape[2])
    return matmul(rows, weight.T).reshape(*parts.shape[:2], -1)


def _linear(parts: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return _with_bias(_product(parts, weight), bias)


def _with_bias(parts: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Add a bias to the parts, shared out by |bias · part|; equally, where no part has any of its direction."""
    shares = np.abs(parts @ bias)  # (tokens, parts)
    total = shares.sum(1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / shares.shape[1])
    parts += shares.astype(parts.dtype)[..., None] * bias
    return parts


def _normalised(parts: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """Carry parts through a layer norm: the spread is that of their sum."""
    spread = np.sqrt(parts.sum(1).var(-1, keepdims=True) + eps)[:, None]  # (tokens, 1, 1)
    return _with_bias((parts - parts.mean(-1, keepdims=True)) / spread * weight, bias)


def _ratio(x: np.ndarray, activation: str) -> np.ndarray:
    """Return f(x) / x, and its limit where x is 0."""
    x = np.where(np.abs(x) < 1e-6, x.dtype.type(1e-6), x)
    with no_grad():
        return ACTIVATIONS[activation](from_numpy(x)).numpy() / x


def _through_head(parts: np.ndarray, head: BertHead, label: int) -> np.ndarray:
    """Carry the parts of the state that a head reads on to one of its logits; (1, parts, hidden) -> (parts,)."""
    (dense, dense_bias), activation, (out, out_bias) = head.steps()
    parts = _linear(parts, dense, dense_bias)
    parts *= _ratio(parts.sum(1, keepdims=True), activation)
    return _linear(parts, out[label : label + 1], out_bias[label : label + 1])[0, :, 0]


def _of_cosine(query: np.ndarray, document: np.ndarray) -> np.ndarray:
    """Return what each part brings to the cosine of the two sums: half of it comes from the parts of either."""
    sums = [parts.sum(0) for parts in (query, document)]
    lengths = [np.linalg.norm(one) for one in sums]
    return np.concatenate([query @ sums[1], document @ sums[0]]) / (2 * lengths[0] * lengths[1])
