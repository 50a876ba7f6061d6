"""MiniLM-L6's scores without gradients: one pair of 64, 128 and 256 tokens, and 32 pairs of ragged lengths.

python benchmarks/encoder.py [--quick] [--json FILE]
"""

import sys

import pairs as work
from floors import gemm_floor
from measure import OURS, Case
from quiet import library
from suite import main

TITLE = "MiniLM-L6, scores only, float32"
RAGGED = 32
BUCKETS = (4, 8)


def ours(pairs):
    """Return a function that scores pairs with backlight."""
    batches = work.our_batches(pairs)
    backlight = library("backlight")
    work.our_model()

    def once():
        with backlight.no_grad():
            return [backlight.cat([work.our_scores(batch) for batch in batches])]

    return once


def theirs(pairs, size: int):
    """Return a function that scores pairs with transformers, so many at a time; 0 for all in one rectangle."""
    work.their_model()
    torch = library("torch")
    everything = [range(len(pairs))]
    groups = work.in_groups(len(pairs), list(map(len, pairs)), size) if size else everything

    def scores(*rectangle):
        with torch.inference_mode():
            return work.their_scores(*rectangle).numpy()

    return work.torch_groups(scores, pairs, groups)


def cases(quick: bool = False) -> list[Case]:
    """Return single pairs, and ragged ones."""
    lengths = (16,) if quick else (64, 128, 256)
    found = [case(f"1 pair, {length} tokens", work.single(length), {}) for length in lengths]
    many = work.ragged(2 if quick else RAGGED)
    best = {f"torch, buckets of {size}": size for size in BUCKETS} | {"torch, one at a time": 1}
    return [*found, case(f"{len(many)} ragged pairs", many, best)]


def case(name: str, pairs, arrangements: dict[str, int]) -> Case:
    """Return one row."""
    candidates = {OURS: lambda: ours(pairs)}
    for rival, size in ({work.PADDED: 0} | arrangements).items():
        candidates[rival] = lambda size=size: theirs(pairs, size)
    tokens = sum(map(len, pairs))
    return Case(
        name,
        candidates,
        floor=gemm_floor(work.flops(pairs, backward=False), work.gemm_shapes(tokens)),
        rounds=7 if arrangements else 15,
        seconds=15.0 if arrangements else 4.0,
    )


if __name__ == "__main__":
    sys.exit(main("encoder", TITLE, cases))
