"""The mask's gradient is the derivative of the score for a mask over keys, by finite differences in PyTorch."""

import numpy as np
import pytest
import torch
import transformers
from tiny_bert import real_ranker, write_cross_encoder

from backlight.explain.methods.leave_one_out import leave_one_out
from backlight.explain.methods.mask_gradient import SHIFT, deletion_gradient, mask_gradient
from backlight.explain.reranker import Reranker
from backlight.models.pairs import DOCUMENT, PairBatch
from backlight.models.ranker import load_ranker
from backlight.models.scorer import MaskGradients

PAIRS = [
    ("how do plants make food", "Green plants make food. The leaf is unlike water, sunlight and air."),
    ("a leaf", "unlike cells"),
]


def test_it_is_the_derivative_for_the_logarithm_of_a_mask(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path, attn_implementation="eager")
    model = model.double().eval()
    for pair in ranker.read(PAIRS):
        (made,) = mask_gradient(ranker, [pair])
        log_mask = torch.zeros(len(pair), dtype=torch.float64, requires_grad=True)
        bias = log_mask.expand(1, 1, len(pair), len(pair))
        ids, types = (torch.from_numpy(part)[None] for part in (pair.ids, pair.type_ids))
        logit = model(input_ids=ids, token_type_ids=types, attention_mask=bias).logits[0, 0]
        (expected,) = torch.autograd.grad(logit, [log_mask])
        of_document = expected[torch.from_numpy(pair.of_side(DOCUMENT))].tolist()
        assert [token.value for token in made.document.tokens] == pytest.approx(of_document, rel=1e-3, abs=1e-7)


def test_it_orders_words_as_deletion_does_where_the_model_pools_by_a_mean():
    ranker = real_ranker()
    text = "Refunds are paid within ten days. Send unworn shoes back in their box, and keep the receipt until then."
    (pair,) = ranker.read([("how long until I get my refund", text)])
    (made,) = mask_gradient(ranker, [pair])
    (true,) = leave_one_out(ranker, [pair], words=1000)
    orders = [np.argsort(np.argsort([word.value for word in one.document.words])) for one in (made, true)]
    assert np.corrcoef(*orders)[0, 1] > 0.6


@pytest.mark.parametrize("of", ["cross-encoder", "bi-encoder"])
def test_fused_attention_gives_what_attention_step_by_step_gives(tmp_path, of):
    ranker = real_ranker() if of == "bi-encoder" else load_ranker(write_cross_encoder(tmp_path))
    batch = PairBatch.of(ranker.read(PAIRS))
    fused, stepwise = ranker.mask_gradients(batch), MaskGradients.of(ranker.inside(batch, slopes=True))
    assert (fused.last is None) == (of == "cross-encoder")
    pairs = [(fused.gradients, stepwise.gradients), (fused.first_slopes, stepwise.first_slopes)]
    if fused.last is not None:
        pairs += [(fused.last, stepwise.last), (fused.last_slopes, stepwise.last_slopes)]
    for one, other in pairs:
        assert np.allclose(one, other, rtol=1e-3, atol=1e-5 * np.abs(other).max())


def test_pairs_in_a_batch_have_the_values_that_they_have_alone():
    ranker = real_ranker()
    pairs = ranker.read(PAIRS)
    for made, pair in zip(mask_gradient(ranker, pairs), pairs):
        (alone,) = mask_gradient(ranker, [pair])
        values = [[token.value for token in one.document.tokens] for one in (made, alone)]
        assert np.allclose(*values, atol=1e-6)


def test_what_moves_up_is_the_derivative_for_positions(tmp_path):
    """The shift is first order in the states that the first layer gets: held to PyTorch's gradient for them."""
    ranker = load_ranker(write_cross_encoder(tmp_path))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path, attn_implementation="eager")
    model = model.double().eval()
    (pair,) = ranker.read(PAIRS[:1])
    ids, types = (torch.from_numpy(part)[None] for part in (pair.ids, pair.type_ids))
    bert = model.base_model

    def states(positions):
        return bert.embeddings(input_ids=ids, token_type_ids=types, position_ids=torch.from_numpy(positions)[None])

    here, moved = states(pair.positions), states(np.maximum(pair.positions - 1, 0)).detach()
    leaf = here.detach().requires_grad_()
    handle = bert.embeddings.register_forward_hook(lambda module, inputs, output: leaf)
    logit = model(input_ids=ids, token_type_ids=types).logits[0, 0]
    handle.remove()
    (gradient,) = torch.autograd.grad(logit, [leaf])
    gains = (gradient * (moved - here)).sum(-1)[0].detach().numpy()
    expected = [-SHIFT * gains[token + 1 :].sum() for token in range(len(pair))]
    differences = [
        [token.value for text in (one.query, one.document) for token in text.tokens]
        for one in (*deletion_gradient(ranker, [pair]), *mask_gradient(ranker, [pair]))
    ]
    places = [*pair.of_side(0), *pair.of_side(1)]
    found = np.subtract(*differences)
    assert found == pytest.approx(np.array(expected)[places], rel=2e-3, abs=1e-6)


def test_it_comes_near_what_deletion_really_does():
    ranker = Reranker.from_pretrained("builtin").scorer
    text = (
        "Photosynthesis is the process by which green plants turn sunlight into chemical energy. In the leaves, "
        "chlorophyll absorbs light, and water and carbon dioxide become sugar and oxygen. The Venus flytrap catches "
        "insects, but even it lives on light, as all plants of the bog do."
    )
    pairs = ranker.read([("where does a plant get its energy from?", text)])
    (true,) = leave_one_out(ranker, pairs, words=1000)
    for method in (mask_gradient, deletion_gradient):
        (made,) = method(ranker, pairs)
        values, effects = ([word.value for word in one.document.words] for one in (made, true))
        assert np.corrcoef(values, effects)[0, 1] > 0.6
        assert made.document.strongest(1)[0].text in [word.text for word in true.document.strongest(3)]
