"""−inf that a mask put into scores is no alarm; every other infinite value is."""

import pytest
import torch

import backlight as bl
from backlight import lens
from backlight.lens.pictures.masks import masked

FORBIDDEN = [[False, True], [False, False]]


def types_of_masks(engine, compute) -> set[str]:
    """Return the types of the nodes that are taken for masks after compute(scores, forbidden) and a backward."""
    scores = engine.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with lens.watch() as watch:
        compute(scores, engine.tensor(FORBIDDEN)).backward()
    nodes = watch.record.nodes
    return {nodes[one].type for one in masked(nodes)}


@pytest.fixture(params=[torch, bl], ids=["torch", "backlight"])
def engine(request):
    return request.param


def attention(engine, put):
    return lambda scores, forbidden: (engine.softmax(put(scores, forbidden), -1) ** 2).sum()


def test_filled_in_replaced_and_added_masks_are_masks(engine):
    inf = float("inf")
    filled = attention(engine, lambda scores, forbidden: scores.masked_fill(forbidden, -inf))
    chosen = attention(engine, lambda scores, forbidden: engine.where(forbidden, engine.tensor(-inf), scores))
    added = attention(engine, lambda s, forbidden: s + engine.zeros(2, 2).masked_fill(forbidden, -inf))
    moved = attention(engine, lambda s, forbidden: s.masked_fill(forbidden, -inf).view(1, 2, 2) / 2)
    assert types_of_masks(engine, filled) == {"MaskedFillBackward0"}
    assert types_of_masks(engine, chosen) == {"WhereBackward0"}
    assert types_of_masks(engine, added) == {"AddBackward0"}
    assert types_of_masks(engine, moved) == {"MaskedFillBackward0", "ViewBackward0", "DivBackward0"}


def test_masked_log_probabilities_are_masks(engine):
    def entropy_of_the_first(scores, forbidden):
        return -engine.log_softmax(scores.masked_fill(forbidden, -float("inf")), -1)[:, 0].sum()

    found = types_of_masks(engine, entropy_of_the_first)
    assert found == {"MaskedFillBackward0", "LogSoftmaxBackward0"}


def test_infinite_values_that_no_mask_put_there_stay_an_alarm(engine):
    inf = float("inf")
    computed = attention(engine, lambda scores, forbidden: -1 / (scores - 1))  # −1/0
    added_to = attention(engine, lambda scores, forbidden: -1 / (scores - 1) + 1)
    positive = attention(engine, lambda scores, forbidden: scores.masked_fill(forbidden, inf))
    row = attention(engine, lambda scores, forbidden: scores.masked_fill(engine.ones_like(forbidden), -inf))
    assert types_of_masks(engine, computed) == types_of_masks(engine, added_to) == set()
    assert types_of_masks(engine, positive) == types_of_masks(engine, row) == set()


def test_a_mask_that_something_else_reads_stays_an_alarm(engine):
    def also_summed(scores, forbidden):
        masked_scores = scores.masked_fill(forbidden, -float("inf"))
        return engine.softmax(masked_scores, -1).sum() + masked_scores.sum()

    assert types_of_masks(engine, also_summed) == set()
