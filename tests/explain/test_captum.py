"""Gradient methods equal captum's on the same model: on tiny random BERTs and on MiniLM with a seeded head.

captum warns where an input does not require grad, which the leaf here does.
"""

import shutil
from functools import cache, partial
from pathlib import Path

import captum.attr
import numpy as np
import pytest
import torch
import transformers
from tiny_bert import real_folder, write_cross_encoder

from backlight.explain.methods.gradients import gradient_x_input, saliency
from backlight.explain.methods.integrated_gradients import integrated_gradients
from backlight.explain.methods.layers import layer_gradient_x_activation
from backlight.explain.methods.smoothgrad import noisy, smoothgrad, smoothgrad_mean
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.ranker import load_ranker

PAIRS = [
    ("how do plants make food from sunlight", "Green plants build their own food; a cell absorbs light and air."),
    ("a leaf", "unlike the water of a cell"),
]
IMPLEMENTATIONS = ["eager", "sdpa"]
CAPTUMS = {"midpoint": "riemann_middle", "gauss-legendre": "gausslegendre"}


def write_minilm(folder: Path) -> Path:
    """Write all-MiniLM-L6-v2 with a head of seeded random weights."""
    config = transformers.AutoConfig.from_pretrained(real_folder(), num_labels=1)
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config).eval()
    encoder = transformers.AutoModel.from_pretrained(real_folder(), add_pooling_layer=False)
    model.bert.load_state_dict(encoder.state_dict(), strict=False)
    with torch.no_grad():
        model.bert.pooler.dense.weight.normal_(std=0.05)
        model.classifier.weight.normal_(std=0.3)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(real_folder() / name, folder / name)
    return folder


WRITE = {"tiny": partial(write_cross_encoder, max_position_embeddings=48), "MiniLM": write_minilm}


@pytest.fixture(scope="module", params=WRITE)
def folder(request, tmp_path_factory):
    return WRITE[request.param](tmp_path_factory.mktemp("model"))


@cache
def ours(folder):
    return load_ranker(folder, "model")


@pytest.fixture(params=IMPLEMENTATIONS)
def theirs(request, folder):
    """Return transformers' model and the score as a function of word embeddings, segments and mask."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation=request.param)
    model = model.eval().requires_grad_(False)

    def score(embeddings, types, mask):
        return model(inputs_embeds=embeddings, token_type_ids=types, attention_mask=mask).logits[:, 0]

    return model, score


def inputs_of(model, pair):
    """Return a pair's word embeddings (a leaf), and its segments and mask."""
    leaf = model.get_input_embeddings()(torch.tensor(pair.ids)[None]).detach().requires_grad_()
    return leaf, (torch.tensor(pair.type_ids)[None], torch.ones(1, len(pair), dtype=torch.long))


def values_of(found, pair):
    """Return the values of all tokens of a pair, in its order."""
    values = np.empty(len(pair))
    for side, tokens in ((QUERY, found.query.tokens), (DOCUMENT, found.document.tokens), (ADDED, found.special)):
        values[pair.of_side(side)] = [token.value for token in tokens]
    return values


def check(method, theirs, folder, captums, tolerance=1e-5, scale=np.asarray, **options):
    """Hold a method against a function of captum's: captums(pair, leaf, others) -> (1, tokens, hidden).

    Args:
        tolerance: of the difference's length, as a share of captum's.
        scale: with `np.abs` a share of the sum of sizes: where values of both signs cancel, their rounding is larger.
    """
    pairs = ours(folder).read(PAIRS)
    for found, pair in zip(method(ours(folder), pairs, **options), pairs, strict=True):
        expected = captums(pair, *inputs_of(theirs[0], pair)).detach()[0].numpy().astype(np.float64)  # (tokens, hidden)
        off = values_of(found, pair) - expected.sum(axis=1)
        assert np.linalg.norm(off) < tolerance * np.linalg.norm(scale(expected).sum(axis=1))


def test_saliency_equals_captums(theirs, folder):
    explainer = captum.attr.Saliency(theirs[1])
    check(saliency, theirs, folder, lambda pair, leaf, others: explainer.attribute(leaf, None, True, others))


def test_gradient_x_input_equals_captums(theirs, folder):
    explainer = captum.attr.InputXGradient(theirs[1])
    check(gradient_x_input, theirs, folder, lambda pair, leaf, others: explainer.attribute(leaf, None, others))


@pytest.mark.parametrize(("baseline", "rule"), [("zero", "midpoint"), ("pad", "gauss-legendre"), ("mask", "midpoint")])
def test_integrated_gradients_equal_captums_with_the_same_steps(theirs, folder, baseline, rule):
    explainer = captum.attr.IntegratedGradients(theirs[1])

    def captums(pair, leaf, others):
        stand_in = torch.from_numpy(ours(folder).baseline(baseline))
        start = torch.where(torch.tensor(pair.sides == ADDED)[:, None], leaf[0].detach(), stand_in)[None]
        return explainer.attribute(leaf, start, None, others, n_steps=12, method=CAPTUMS[rule])

    options = {"baseline": baseline, "rule": rule, "steps": 12, "max_steps": 12}
    check(integrated_gradients, theirs, folder, captums, scale=np.abs, **options)


def test_the_gap_is_captums_convergence_delta(theirs, folder):
    explainer = captum.attr.IntegratedGradients(theirs[1])
    pairs = ours(folder).read(PAIRS)
    options = {"rule": "midpoint", "steps": 4, "max_steps": 4}
    for found, pair in zip(integrated_gradients(ours(folder), pairs, **options), pairs, strict=True):
        leaf, others = inputs_of(theirs[0], pair)
        start = torch.where(torch.tensor(pair.sides == ADDED)[:, None], leaf.detach(), 0.0)
        told = {"n_steps": 4, "method": "riemann_middle", "return_convergence_delta": True}
        delta = explainer.attribute(leaf, start, None, others, **told)[1].item()
        assert found.gap == pytest.approx(delta, rel=1e-4, abs=3e-6)


@pytest.mark.parametrize(("method", "of_sizes"), [(smoothgrad, True), (smoothgrad_mean, False)])
def test_smoothgrad_equals_captums_with_the_same_noise(theirs, folder, method, of_sizes, monkeypatch):
    explainer = captum.attr.NoiseTunnel(captum.attr.Saliency(theirs[1]))

    def captums(pair, leaf, others):
        own = leaf.detach()[0].numpy()
        draws = torch.from_numpy(np.stack([copy - own for copy in noisy(pair, own, 0.3, 6, seed=1)]))
        monkeypatch.setattr(torch, "normal", lambda mean, deviations: draws)
        told = {"nt_samples": 6, "abs": of_sizes, "additional_forward_args": others}
        return explainer.attribute(leaf, **told).abs()

    check(method, theirs, folder, captums, noise=0.3, samples=6, seed=1)


@pytest.mark.parametrize("layer", [1, 2])
def test_layer_gradient_x_activation_equals_captums(theirs, folder, layer):
    model, score = theirs
    layers = model.bert.encoder.layer
    if layer == len(layers):  # after the last layer only [CLS] is read, which no word's value shows
        layer -= 1
    explainer = captum.attr.LayerGradientXActivation(score, layers[layer - 1])

    def captums(pair, leaf, others):
        found = explainer.attribute(leaf, None, others)
        return found[0] if isinstance(found, tuple) else found

    check(layer_gradient_x_activation, theirs, folder, captums, layer=layer)


def test_an_interpretable_embedding_stays_in_captums_model_and_nothing_stays_in_ours(theirs, folder):
    """captum swaps the embedding for one that takes vectors, and a model that nobody swaps back reads ids as such."""
    model, _ = theirs
    pair = ours(folder).read(PAIRS)[0]
    ids = torch.tensor(pair.ids)[None]
    before = model(input_ids=ids).logits
    with pytest.warns(UserWarning, match="they will be replaced"):
        swapped = captum.attr.configure_interpretable_embedding_layer(model, "bert.embeddings.word_embeddings")
    assert model.get_input_embeddings() is swapped  # ids of as many tokens as dims would now give a score in silence
    captum.attr.remove_interpretable_embedding_layer(model, swapped)
    assert torch.equal(model(input_ids=ids).logits, before)

    ranker, batch = ours(folder), PairBatch.of([pair])
    weights = {name: weight.numpy().copy() for name, weight in ranker.encoder.state_dict().items()}
    score = ranker.score(batch)
    for method in (saliency, integrated_gradients, smoothgrad, layer_gradient_x_activation):
        method(ranker, [pair])
    assert np.array_equal(ranker.score(batch), score)
    for name, weight in ranker.encoder.state_dict().items():
        assert np.array_equal(weight.numpy(), weights[name]) and weight.grad is None
