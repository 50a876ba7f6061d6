"""The gradient of a pair's score for its word embeddings, Σ|∂score/∂embedding| a token, with MiniLM-L6.

    python benchmarks/saliency.py [--quick] [--json FILE] [--only "32 ragged pairs"]

One pair of 64, 128 and 256 tokens, 32 pairs of ragged lengths, 1,000 of them, and integrated gradients with 50 steps.
Rivals: see NOTE [PyTorch's arrangements] in pairs.py. All candidates return one value a token, and these are compared
before anything is timed.

NOTE [A thousand pairs in quarters]
1,000 pairs take PyTorch minutes. Every candidate therefore runs every fourth pair in a round, another quarter in each
of four rounds; what is shown is four times the median, and its quartiles.
"""

import itertools
import sys

import numpy as np
import pairs as work
from floors import gemm_floor
from measure import OURS, Bar, Case
from quiet import library
from suite import main

TITLE = "MiniLM-L6, gradient of the score for the embeddings, float32"
LENGTHS = (64, 128, 256)
BUCKETS = (2, 4, 8)
CHECKED = "backlight, with the check of a score"
USUAL_BATCH = 32  # what a user pads at a time where there are more
STEPS = 50
SINGLE_BAR, PADDED_BAR, BEST_BAR, FLOOR_BAR = 0.70, 0.35, 0.80, 1.25


def our_saliency(pairs):
    """Return a function that computes the importances of pairs with backlight: the gradient alone, as the rivals do."""
    ranker, batches = work.our_ranker(), work.our_batches(pairs)
    return lambda: [np.concatenate([np.abs(ranker.gradients(batch)[1]).sum(axis=1) for batch in batches])]


def our_checked_saliency(pairs):
    """Return the same as backlight's users call it: the shortest pair is scored too, and compared."""
    ranker, batches = work.our_ranker(), work.our_batches(pairs)
    checks, read = library("backlight.explain.checks"), [pair for batch in batches for pair in batch.pairs]
    return lambda: [
        np.concatenate(
            [
                np.abs(checks.checked_gradients(ranker, batch, check)[1]).sum(axis=1)
                for batch, check in checks.checked_passes(ranker, read, None)
            ]
        )
    ]


def their_importances(ids, types, mask) -> np.ndarray:
    """Return the importances of a rectangle with PyTorch."""
    torch = library("torch")
    leaf = work.their_model().get_input_embeddings()(ids).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(work.their_scores(ids, types, mask, leaf).sum(), [leaf])
    return slopes.abs().sum(-1).numpy()


def their_saliency(pairs, groups):
    """Return a function that computes the importances of pairs with PyTorch, group by group."""
    work.their_model()
    return work.torch_groups(their_importances, pairs, groups)


def in_order(count: int, size: int) -> list:
    """Return the places of pairs in their order, so many at a time."""
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def our_integrated(ids, steps: int):
    """Return a function that integrates the gradient from zero embeddings to a pair's, with backlight."""
    backlight, model = library("backlight"), work.our_model()
    embeddings = model.embed_words(ids).numpy()
    batches = work.our_batches([ids] * steps)
    alphas = np.repeat((np.arange(steps, dtype=np.float32) + 0.5) / steps, len(ids))[:, None]

    def once():
        total, done = np.zeros_like(embeddings), 0
        for batch in batches:
            here = alphas[done : done + len(batch.ids)]
            path = backlight.from_numpy(here * np.tile(embeddings, (len(batch), 1))).requires_grad_()
            (slopes,) = backlight.autograd.grad(work.our_scores(batch, path).sum(), [path])
            total += slopes.numpy().reshape(len(batch), *embeddings.shape).sum(axis=0)
            done += len(batch.ids)
        return [embeddings * total / steps]

    return once


def their_integrated(ids, steps: int):
    """Return the same with PyTorch: all steps in one batch."""
    torch = library("torch")
    single = work.rectangle([ids])
    embeddings = work.their_model().get_input_embeddings()(single[0]).detach()
    rectangle = [part.expand(steps, -1) for part in single]
    alphas = ((torch.arange(steps) + 0.5) / steps)[:, None, None]

    def once():
        path = (alphas * embeddings).requires_grad_()
        (slopes,) = torch.autograd.grad(work.their_scores(*rectangle, path).sum(), [path])
        return [(embeddings[0] * slopes.mean(0)).numpy()]

    return once


def in_quarters(make, pairs):
    """Return a function that runs another quarter of the pairs at each call (NOTE [A thousand pairs in quarters])."""
    works = itertools.cycle([make(pairs[start::4]) for start in range(4)])

    def once():
        next(works)()

    return once


def cases(quick: bool = False) -> list[Case]:
    """Return single pairs, ragged ones, a thousand, and integrated gradients."""
    if quick:
        return [single_case(16), ragged_case(3, (2,)), integrated_case(16, 3)]
    return [
        *map(single_case, LENGTHS),
        ragged_case(32, BUCKETS),
        thousand_case(),
        integrated_case(128, STEPS),
    ]


def single_case(length: int) -> Case:
    """Return the row of one pair."""
    pairs = work.single(length)
    barred = length == 128
    return Case(
        f"1 pair, {length} tokens",
        {
            OURS: lambda: our_saliency(pairs),
            CHECKED: lambda: our_checked_saliency(pairs),
            work.PADDED: lambda: their_saliency(pairs, [range(1)]),
        },
        floor=gemm_floor(work.flops(pairs, backward=True), work.gemm_shapes(length)),
        bars=(Bar(SINGLE_BAR), Bar(1.0, of="memory")) if barred else (),
        seconds=5.0,
        memory=(OURS, work.PADDED) if barred else (),
    )


def ragged_case(count: int, buckets: tuple[int, ...]) -> Case:
    """Return the row of pairs with many lengths, with all of PyTorch's arrangements."""
    pairs = work.ragged(count)
    lengths = list(map(len, pairs))
    candidates = {
        OURS: lambda: our_saliency(pairs),
        CHECKED: lambda: our_checked_saliency(pairs),
        work.PADDED: lambda: their_saliency(pairs, [range(count)]),
        "torch, one at a time": lambda: their_saliency(pairs, work.in_groups(count, lengths, 1)),
        "torch, two workers": lambda: work.Workers(their_importances, pairs),
    }
    for size in buckets:
        groups = work.in_groups(count, lengths, size)
        candidates[f"torch, buckets of {size}"] = lambda groups=groups: their_saliency(pairs, groups)
    best = tuple(name for name in candidates if name.startswith("torch,"))
    return Case(
        f"{count} ragged pairs",
        candidates,
        floor=gemm_floor(work.flops(pairs, backward=True), work.gemm_shapes(sum(lengths))),
        bars=(
            Bar(PADDED_BAR),
            Bar(BEST_BAR, against=best),
            Bar(FLOOR_BAR, against=("the floor",)),
            Bar(1.0, of="memory"),
        ),
        rounds=5,
        seconds=60.0,
        memory=(OURS, work.PADDED),
    )


def thousand_case() -> Case:
    """Return the row of 1,000 pairs, where nobody pads all at once."""
    pairs = work.ragged(1000)

    def sorted_eights(some):
        return their_saliency(some, work.in_groups(len(some), list(map(len, some)), 8))

    return Case(
        "1,000 ragged pairs",
        {
            OURS: lambda: in_quarters(our_saliency, pairs),
            work.PADDED: lambda: in_quarters(
                lambda some: their_saliency(some, in_order(len(some), USUAL_BATCH)), pairs
            ),
            "torch, buckets of 8": lambda: in_quarters(sorted_eights, pairs),
        },
        floor=gemm_floor(work.flops(pairs, backward=True) / 4, work.gemm_shapes(1024)),
        unit="s",
        scale=4.0,
        tolerance=None,  # the same functions were compared on 32 pairs
        rounds=4,
        seconds=300.0,
    )


def integrated_case(length: int, steps: int) -> Case:
    """Return the row of integrated gradients for one pair."""
    (ids,) = work.single(length)
    return Case(
        f"IG, {steps} steps",
        {OURS: lambda: our_integrated(ids, steps), work.PADDED: lambda: their_integrated(ids, steps)},
        floor=gemm_floor(work.flops([ids] * steps, backward=True), work.gemm_shapes(1024)),
        rounds=5,
        seconds=25.0,
    )


if __name__ == "__main__":
    sys.exit(main("saliency", TITLE, cases))
