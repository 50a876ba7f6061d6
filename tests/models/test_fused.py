"""The fused cross-encoder: a logit and a cosine of one row of tokens, against PyTorch, and looked into."""

import numpy as np
import pytest
from tiny_fused import reference_parts, write_fused

from backlight.explain.methods.decompx import decompx
from backlight.explain.methods.mask_gradient import mask_gradient
from backlight.models.checkpoint import read_weights
from backlight.models.conversion import export_compact, export_float32, export_int8
from backlight.models.encoders.two_streams import Views, pair_apart
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.pooling import gradient_of_pooling
from backlight.models.quantised import base_of
from backlight.models.ranker import load_ranker
from backlight.models.scorer import MaskGradients

PAIRS = [
    ("plants make food", "the leaf of a green cell"),
    ("air and water", "plants make food from sunlight, water and air"),
    ("a cell", "unlike cells"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a fused cross-encoder with random weights."""
    return write_fused(tmp_path_factory.mktemp("models") / "fused")


@pytest.fixture(scope="module")
def model(folder):
    """Return the model in it."""
    return load_ranker(folder, "tiny")


def values_of(found):
    """Return the values of a pair in the order of its tokens: [CLS] query [SEP] [CLS] document [SEP]."""
    special = [token.value for token in found.special]
    query, document = ([token.value for token in text.tokens] for text in (found.query, found.document))
    return [special[0], *query, *special[1:3], *document, special[3]]


def test_the_score_is_pytorchs_logit_and_gated_cosine(folder, model):
    read = model.read(PAIRS)
    for pair, score, expected in zip(read, model.scores_of(read), reference_parts(folder, read)):
        assert pair.pieces.count("[CLS]") == 2 and len(pair.lengths) == 1
        assert score == pytest.approx(sum(expected), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(np.ravel(model.parts_of(PairBatch.of([pair]))), expected, rtol=1e-4, atol=1e-5)
    logits, brought = np.transpose(reference_parts(folder, read))
    assert np.ptp(brought) > 0.1 and np.abs(logits).max() > 0.1


def test_all_ways_to_a_score_agree(model):
    batch = PairBatch.of(model.read(PAIRS))
    score = model.score(batch)
    np.testing.assert_allclose(model.score(batch, model.embed(batch)), score, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.inside(batch).scores, score, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.build_up(batch)[-1], score, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.mask_gradients(batch).scores, score, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.state_gradients(batch, 1).scores, score, rtol=1e-5, atol=1e-6)
    documents = [document for _, document in PAIRS]
    ranked = model.rank_scores("plants", documents)
    alone = [model.score(PairBatch.of(model.read([("plants", one)])))[0] for one in documents]
    np.testing.assert_allclose(ranked, alone, rtol=1e-5, atol=1e-6)


def test_the_similarity_is_that_of_its_own_bi_encoder(model):
    read = model.read(PAIRS)
    texts = [text for pair in PAIRS for text in pair]
    embedded = model.similarity.embeddings_of(texts)
    np.testing.assert_allclose(
        model.cosines_of(PairBatch.of(read)), (embedded[0::2] * embedded[1::2]).sum(1), rtol=1e-5
    )


def test_texts_stand_apart_as_they_would_alone(model):
    (pair,) = model.read(PAIRS[:1])
    alone = Views.of(PairBatch.of([pair, pair])).alone
    query, document = (len(model.tokenizer(text)) for text in PAIRS[0])
    assert alone.lengths == (query, document) * 2
    assert alone.positions.tolist() == [*range(query), *range(document)] * 2 and not alone.type_ids.any()
    apart = pair_apart(pair)
    assert apart.lengths == (query, document) and apart.positions.tolist() == [*range(query), *range(document)]
    keep = np.ones(len(pair), bool)
    keep[[1, query + 2]] = False
    left = pair_apart(pair.kept(keep))
    assert left.positions.tolist() == [0, *range(2, query), 0, 1, *range(3, document)]
    assert Views.of(PairBatch.of([pair.kept(keep)])).alone.positions.tolist() == left.positions.tolist()


def test_the_gradient_of_the_mask_is_that_of_the_attentions_and_of_the_mean(model):
    batch = PairBatch.of(model.read(PAIRS))
    found = model.mask_gradients(batch)
    inside = model.inside(batch, slopes=True)
    size = model.encoder.config.hidden_size
    read = gradient_of_pooling(Views.of(batch).alone, inside.states[-1][:, size:], inside.state_slopes[-1][:, size:])
    np.testing.assert_allclose(found.gradients, MaskGradients.of(inside).gradients + read, rtol=1e-4, atol=1e-5)
    assert np.abs(read).max() > 1e-3 and found.last is None
    explained = np.concatenate([values_of(one) for one in mask_gradient(model, model.read(PAIRS))])
    np.testing.assert_allclose(explained, found.gradients, rtol=1e-5, atol=1e-6)


def test_no_head_of_the_second_stream_looks_at_the_other_text(model):
    (pair,) = model.read(PAIRS[:1])
    inside = model.inside(PairBatch.of([pair]), slopes=True)
    query = np.flatnonzero(pair.type_ids == 0)
    document = np.flatnonzero(pair.type_ids == 1)
    for (attention,) in inside.attentions:
        assert len(attention) == 6
        np.testing.assert_allclose(attention.sum(-1), 1, rtol=1e-5)
        assert not attention[3:][:, query][:, :, document].any() and not attention[3:][:, document][:, :, query].any()
        seen = attention[: inside.joint_heads][:, query][:, :, document]
        assert seen[:, :, 1:].all() and not seen[:, :, 0].any()  # all but the document's [CLS]
    assert inside.states[0].shape == (len(pair), 48)


def test_gradients_are_those_of_differences(model):
    (pair,) = model.read(PAIRS[:1])
    batch = PairBatch.of([pair])
    words = model.embed(batch)
    _, gradients = model.gradients(batch)
    rng = np.random.default_rng(0)
    direction = rng.normal(size=words.shape).astype(np.float32)
    direction /= np.linalg.norm(direction)
    step = 1e-2
    change = (model.score(batch, words + step * direction) - model.score(batch, words - step * direction)) / (2 * step)
    assert change[0] == pytest.approx((gradients * direction).sum(), rel=1e-2, abs=1e-3)
    assert np.abs(gradients[pair.of_side(QUERY)]).min() > 0 and np.abs(gradients[pair.of_side(DOCUMENT)]).min() > 0
    assert np.abs(gradients[pair.of_side(ADDED)]).max() > 0


def test_decompx_makes_the_score(model):
    for found in decompx(model, model.read(PAIRS)):
        assert found.gap == pytest.approx(0, abs=1e-4)


def test_int8_and_differences_read_back(folder, tmp_path):
    export_int8(folder, tmp_path / "int8")
    export_compact(folder, tmp_path / "compact")
    export_float32(tmp_path / "compact", tmp_path / "plain")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("int8", "compact")]
    assert sizes[1] < sizes[0]
    texts = ["food from sunlight", "a cell"]
    scores = [load_ranker(tmp_path / name).rank_scores("plants", texts) for name in ("compact", "plain")]
    np.testing.assert_allclose(*scores, rtol=1e-6)
    plain, before = read_weights(tmp_path / "plain"), read_weights(folder)
    name = "bert.encoder.layer.0.output.dense.weight"
    differences = [one[name] - one[base_of(name)] for one in (plain, before)]
    assert all(len(np.unique(np.abs(row).round(5))) <= 2 for row in differences[0])
    lost = np.linalg.norm(differences[0] - differences[1]) / np.linalg.norm(differences[1])
    assert lost < 0.4  # two sizes hold seven eighths of what a normal distribution varies
    words = "bert.embeddings.word_embeddings.weight"
    step = np.abs(before[words]).max(1, keepdims=True) / 31
    assert (np.abs(plain[words] - before[words]) <= 0.51 * step).all()
