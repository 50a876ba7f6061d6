"""DecompX carries each token's part forward: the parts add up, and equal the paper's formulas written out."""

import math

import numpy as np
import pytest
import torch
from tiny_bert import cross_encoder, real_ranker, write_bert

from backlight.errors import InputError
from backlight.explain.methods.decompx import decompx
from backlight.explain.methods.registry import METHODS
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker

PAIRS = [("how do plants make food", "green plants make food from water , air"), ("a leaf", "unlike cells")]


def values_of(found):
    """Return the values of a cross-encoder's pair in the order of its tokens: [CLS] query [SEP] document [SEP]."""
    special = [token.value for token in found.special]
    texts = [[token.value for token in text.tokens] for text in (found.query, found.document)]
    return np.array([special[0], *texts[0], special[1], *texts[1], special[2]])


def share(bias, parts):
    """Return bias shared out by |bias · part|, for parts of one token."""
    weights = np.array([abs(part @ bias) for part in parts])
    return [part + bias * weight / weights.sum() for part, weight in zip(parts, weights)]


def norm(parts, weight, bias, eps):
    spread = math.sqrt(sum(parts).var() + eps)
    return share(bias, [(part - part.mean()) / spread * weight for part in parts])


def gelu(x):
    return 0.5 * x * (1 + torch.erf(torch.tensor(x) / math.sqrt(2)).numpy())


def written_out(ranker, pair):
    """Return each token's part of the logit by the paper's formulas, one number at a time, in float64."""
    inside = ranker.inside(PairBatch.of([pair]))
    arrays = {name: array.astype(np.float64) for name, array in ranker.encoder.arrays().items()}
    config, n = ranker.encoder.config, len(pair)
    start = inside.states[0].astype(np.float64)
    parts = [[start[i] if i == k else np.zeros_like(start[i]) for k in range(n)] for i in range(n)]
    size, heads = config.hidden_size, config.num_attention_heads
    for number in range(config.num_hidden_layers):
        w = {name.split(f"layer.{number}.")[1]: a for name, a in arrays.items() if f"layer.{number}." in name}
        value, value_bias = w["attention.self.qkv.weight"][2 * size :], w["attention.self.qkv.bias"][2 * size :]
        out, eps = w["attention.output.dense.weight"], config.layer_norm_eps
        after = []
        for i in range(n):
            own = []
            for k in range(n):
                mixed = np.zeros(size)
                for head in range(heads):
                    here = slice(head * size // heads, (head + 1) * size // heads)
                    for j in range(n):
                        mixed[here] += inside.attentions[number][0][head, i, j] * (value[here] @ parts[j][k])
                own.append(out @ mixed)
            own = share(out @ value_bias + w["attention.output.dense.bias"], own)
            own = [a + b for a, b in zip(own, parts[i])]
            own = norm(own, w["attention.output.LayerNorm.weight"], w["attention.output.LayerNorm.bias"], eps)
            inner = share(w["intermediate.dense.bias"], [w["intermediate.dense.weight"] @ part for part in own])
            ratio = gelu(sum(inner)) / sum(inner)
            fed = share(w["output.dense.bias"], [w["output.dense.weight"] @ (part * ratio) for part in inner])
            own = [a + b for a, b in zip(fed, own)]
            after.append(norm(own, w["output.LayerNorm.weight"], w["output.LayerNorm.bias"], eps))
        parts = after
    (dense, dense_bias), _, (last, last_bias) = ranker.head.steps()
    pooled = share(dense_bias, [dense @ part for part in parts[0]])
    ratio = np.tanh(sum(pooled)) / sum(pooled)
    return np.array(share(last_bias, [last @ (part * ratio) for part in pooled]))[:, 0]


@pytest.mark.parametrize("pair", PAIRS)
def test_parts_equal_the_papers_formulas_written_out(pair):
    (read,) = cross_encoder().read([pair])
    found = values_of(decompx(cross_encoder(), [read])[0])
    np.testing.assert_allclose(found, written_out(cross_encoder(), read), rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("settings", [{}, {"hidden_act": "relu"}, {"hidden_act": "silu"}, {"num_hidden_layers": 4}])
def test_the_parts_of_a_logit_add_up_to_it(settings):
    ranker = cross_encoder(**settings)
    for found in decompx(ranker, ranker.read(PAIRS)):
        assert values_of(found).sum() == pytest.approx(found.score, abs=1e-5)
        assert abs(found.gap) < 1e-5
        assert found.signed and found.baseline


def test_the_parts_of_a_cosine_add_up_to_it():
    (found,) = decompx(real_ranker(), real_ranker().read(PAIRS[:1]))
    tokens = (*found.query.tokens, *found.document.tokens, *found.special)
    assert sum(token.value for token in tokens) == pytest.approx(found.score, abs=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken", "mean_sqrt_len_tokens"])
def test_every_pooling_that_is_a_sum_is_followed(tmp_path, pooling):
    folder = write_bert(tmp_path)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(f'{{"pooling_mode": "{pooling}"}}')
    ranker = load_ranker(folder)
    (found,) = decompx(ranker, ranker.read(PAIRS[:1]))
    assert abs(found.gap) < 1e-5


def test_small_pieces_of_work_give_the_same(monkeypatch):
    ranker = cross_encoder()
    whole = values_of(decompx(ranker, ranker.read(PAIRS))[0])
    monkeypatch.setattr("backlight.explain.methods.decompx.NUMBERS_AT_ONCE", 1)
    np.testing.assert_allclose(values_of(decompx(ranker, ranker.read(PAIRS))[0]), whole, rtol=1e-3, atol=1e-6)


def test_other_models_and_poolings_are_refused(tmp_path):
    folder = write_bert(tmp_path)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
    ranker = load_ranker(folder)
    with pytest.raises(InputError, match="must follow sums, and max pooling is none"):
        decompx(ranker, ranker.read(PAIRS))

    class Other:
        name = "other"

    with pytest.raises(InputError, match="knows those of BERT's shape; other is of another"):
        decompx(Other(), ranker.read(PAIRS))


def test_the_method_is_asked_for_by_name():
    assert METHODS["decompx"].explain is decompx
