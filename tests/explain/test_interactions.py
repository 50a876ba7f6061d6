"""What two words bring together: by its definition, by PyTorch's Hessians, and by what must hold for any model."""

import numpy as np
import pytest
import torch
import transformers
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder

from backlight.adapters.torch_ranker import TorchRanker
from backlight.errors import GraphError, InputError
from backlight.explain.methods.interactions import MATRICES, hessian, integrated_hessians, joint_occlusion, matrix
from backlight.explain.parts import word_parts
from backlight.explain.presentation.wording import name_of
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.ranker import load_ranker

PAIR = ("how do plants", "Green plants make food.")
SMALLER = {"hidden_size": 6, "intermediate_size": 8, "num_hidden_layers": 1}  # PyTorch makes whole Hessians of it


def read(ranker=None, pair=PAIR):
    return (ranker or cross_encoder()).read([pair])[0]


def torchs(folder, pair):
    """Return a function from word embeddings in float64 to the logit of a pair, and the embeddings."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    model = model.eval().double().requires_grad_(False)
    types = torch.tensor(pair.type_ids)[None]

    def logit(embeddings):
        return model(inputs_embeds=embeddings[None], token_type_ids=types).logits[0, 0]

    return logit, model.get_input_embeddings()(torch.tensor(pair.ids))


def blocks(second, change):
    """Return change · second derivatives · change by token: (tokens, tokens)."""
    return torch.einsum("id,idje,je->ij", change, second, change)


def by_words(pair, tokens):
    """Sum (tokens, tokens) over the words of query and of document."""
    query, document = (word_parts(pair, side) for side in (QUERY, DOCUMENT))
    return np.array([[tokens[np.ix_(one.tokens, other.tokens)].sum() for other in document] for one in query])


def test_integrated_hessians_equal_pytorchs_over_both_ways(tmp_path):
    """The definition's double integral, by 6 × 6 points, each with the whole Hessian."""
    ranker = load_ranker(write_cross_encoder(tmp_path, **SMALLER))
    pair = read(ranker, ("green plants", "plants make food"))
    logit, words = torchs(tmp_path, pair)
    start = words.clone()
    start[pair.sides != ADDED] = 0
    change = words - start
    points, weights = np.polynomial.legendre.leggauss(6)
    points, weights = (points + 1) / 2, weights / 2  # of α and of β
    expected = torch.zeros(len(pair), len(pair), dtype=torch.float64)
    for first in range(6):
        for second in range(first + 1):  # the other half is the same
            share = weights[first] * weights[second] * (1 if first == second else 2)
            both = points[first] * points[second]
            place = start + both * change
            expected += share * both * blocks(torch.autograd.functional.hessian(logit, place), change)
            slopes = torch.autograd.functional.jacobian(logit, place)
            expected += share * torch.diag((slopes * change).sum(1))
    found = integrated_hessians(ranker, pair, baseline="zero", steps=24)
    np.testing.assert_allclose(np.array(found.values), by_words(pair, expected.numpy()), atol=1e-4)
    parts = {side: pair.of_side(side) for side in (QUERY, DOCUMENT)}
    for side, name in ((QUERY, "within_query"), (DOCUMENT, "within_document")):
        within = expected.numpy()[np.ix_(parts[side], parts[side])].sum()
        assert found.settings[name] == pytest.approx(within, abs=5e-4)
    assert found.settings["between"] == pytest.approx(2 * np.sum(found.values), abs=1e-9)
    assert found.gap == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("baseline", ["zero", "pad", "mask", "average"])
def test_all_values_of_all_tokens_add_up_to_what_the_words_bring(baseline):
    for ranker, atol in ((cross_encoder(), 2e-3), (real_ranker(), 0.2)):
        pair = read(ranker, ("plants", "Green plants"))
        found = integrated_hessians(ranker, pair, baseline=baseline)
        embeddings = ranker.embed(PairBatch.of([pair]))
        bare = np.where((pair.sides == ADDED)[:, None], embeddings, ranker.baseline(baseline)).astype(np.float32)
        least = ranker.score(PairBatch.of([pair]), bare)[0]
        sums = sum(found.settings[name] for name in ("within_query", "between", "within_document"))
        assert sums - found.gap == pytest.approx(found.score - least, abs=1e-5)
        assert abs(found.gap) < atol


def test_the_hessian_at_the_words_equals_pytorchs(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path, **SMALLER))
    pair = read(ranker)
    logit, words = torchs(tmp_path, pair)
    expected = blocks(torch.autograd.functional.hessian(logit, words), words).numpy()
    np.testing.assert_allclose(np.array(hessian(ranker, pair).values), by_words(pair, expected), atol=1e-4)


def test_products_of_second_derivatives_are_symmetric():
    for ranker in (cross_encoder(), real_ranker()):
        batch = PairBatch.of([read(ranker), read(ranker, ("a leaf", "unlike cells"))])
        rng = np.random.default_rng(0)
        one, other = rng.normal(size=(2, *ranker.embed(batch).shape)).astype(np.float32)
        scores, slopes, products = ranker.curvatures(batch, [one, other])
        first, second = products
        assert (first * other).sum() == pytest.approx((second * one).sum(), rel=1e-3)
        np.testing.assert_allclose(scores, ranker.score(batch), atol=1e-6)
        np.testing.assert_allclose(slopes, ranker.gradients(batch)[1], atol=1e-5)


@pytest.mark.parametrize("by", ["mask", "drop"])
def test_joint_occlusion_is_what_only_both_bring(by):
    ranker, query, document = cross_encoder(), PAIR[0].split(), PAIR[1].replace(".", " .").split()

    def score(one=None, other=None):
        if by == "drop":
            texts = [[word for word in text if word != gone] for text, gone in ((query, one), (document, other))]
            pair = read(ranker, tuple(map(" ".join, texts)))
        else:
            whole = read(ranker, (" ".join(query), " ".join(document)))
            words = word_parts(whole, QUERY) + word_parts(whole, DOCUMENT)
            named = list(zip([*query, *document], words))
            keep = np.ones(len(whole), bool)
            for number, (name, part) in enumerate(named):
                keep[list(part.tokens)] = name != (one if number < len(query) else other)
            pair = whole.kept(keep)
        return float(ranker.score(PairBatch.of([pair]))[0])

    found = joint_occlusion(ranker, read(ranker, (" ".join(query), " ".join(document))), by=by)
    expected = [[score() - score(one) - score(None, other) + score(one, other) for other in document] for one in query]
    np.testing.assert_allclose(np.array(found.values), expected, atol=1e-5)
    assert found.score == pytest.approx(score(), abs=1e-6)
    assert found.passes == 1 + 3 + 5 + 15


class Table:
    """A scorer whose score is a sum over words, and products of a word of the query with one of the document."""

    name, score_name, highest_score = "table", "sum", None
    tokens_a_pass = 2048

    def __init__(self, links):
        self._links = links

    def score(self, batch, inputs_embeds=None):
        return np.array([self._scored(pair) for pair in batch.pairs])

    def _scored(self, pair):
        pieces = [set(np.array(pair.pieces)[pair.of_side(side)]) for side in (QUERY, DOCUMENT)]
        together = sum(self._links.get((one, other), 0.0) for one in pieces[0] for other in pieces[1])
        return 0.5 * len(pieces[0]) + 0.25 * len(pieces[1]) + together


def test_joint_occlusion_finds_the_links_of_a_model_that_is_made_of_them():
    expected = {("plants", "food"): 2.0, ("leaf", "make"): -1.0}
    found = joint_occlusion(Table(expected), read(pair=("a leaf plants", PAIR[1])))
    for row, word in zip(found.values, found.query):
        for value, other in zip(row, found.document):
            assert value == pytest.approx(expected.get((word.text, other.text), 0.0), abs=1e-9)
    assert [(link.query.text, link.document.text) for link in found.strongest(2)] == list(expected)
    assert [word.value for word in found.query] == pytest.approx([0.0, -1.0, 2.0])
    assert [word.value for word in found.document] == pytest.approx([0.0, 0.0, -1.0, 2.0, 0.0])


def test_a_model_without_links_has_nothing_to_tell():
    with pytest.raises(GraphError, match="must not be zero everywhere"):
        joint_occlusion(Table({}), read(pair=("a leaf", PAIR[1])))


@pytest.mark.parametrize("method, options", [("joint-occlusion", {}), ("integrated-hessians", {"max_steps": 16})])
def test_texts_of_a_bi_encoder_meet_in_the_words_they_share(method, options):
    texts = "what moves the sea", "The tides follow the Moon, and the sea."
    found = matrix(real_ranker(), *texts, method=method, **options)
    strongest = found.strongest(1)[0]
    assert (strongest.query.text, strongest.document.text) == ("sea", "sea")
    assert (len(found.query), len(found.document)) == (4, 10)
    assert np.shape(found.values) == (4, 10)


def test_punctuation_is_no_strongest_pair_and_no_column():
    found = matrix(cross_encoder(), "plants ?", "food , food .")
    links = found.strongest()
    assert {(link.query.text, link.document.text) for link in links} == {("plants", "food")} and len(links) == 2
    chosen, sizes = found.strongest_columns(9)
    assert [found.document[column].text for column in chosen] == ["food", "food"] and len(sizes) == 2
    assert len(found.rows()) == 8 and [name_of(word, found.document) for word in found.document][2] == "2nd “food”"
    assert found.activated == pytest.approx(1 / (1 + np.exp(-found.score)))


def test_a_model_of_another_engine_is_refused_by_name():
    for method in ("hessian", "integrated-hessians"):
        with pytest.raises(InputError, match=f"{method} needs second derivatives.*table runs on another"):
            MATRICES[method].explain(Table({}), read())


def test_pytorchs_engine_gives_the_same_joint_occlusion_and_no_second_derivatives(tmp_path):
    ours, theirs = load_ranker(write_cross_encoder(tmp_path)), TorchRanker(tmp_path)
    found = [np.array(joint_occlusion(ranker, read(ranker)).values) for ranker in (ours, theirs)]
    np.testing.assert_allclose(*found, atol=1e-5)
    for method in ("hessian", "integrated-hessians"):
        with pytest.raises(InputError, match="this needs a model on backlight's own engine, and PyTorch runs"):
            matrix(theirs, *PAIR, method=method)


def test_wrong_options_are_refused():
    with pytest.raises(
        InputError, match="method must be one of joint-occlusion, integrated-hessians, hessian, maxsim, got ig"
    ):
        matrix(cross_encoder(), *PAIR, method="ig")
    with pytest.raises(InputError, match="steps must be from 1 to max_steps, got 0 and 128"):
        matrix(cross_encoder(), *PAIR, method="integrated-hessians", steps=0)
    with pytest.raises(InputError, match="the document must hold something that the model reads"):
        matrix(cross_encoder(), "plants", " ")


def test_steps_double_until_the_gap_is_small():
    pair = read()
    few = integrated_hessians(cross_encoder(), pair, baseline="mask", steps=1, max_steps=1)
    more = integrated_hessians(cross_encoder(), pair, baseline="mask", steps=1, max_steps=64, tolerance=1e-3)
    assert (few.settings["steps"], more.settings["steps"] > 1) == (1, True)
    assert abs(more.gap) < abs(few.gap)
    assert more.passes > few.passes


def test_a_relu_inside_leaves_a_gap_that_is_told():
    found = integrated_hessians(cross_encoder(hidden_act="relu"), read(), baseline="zero", max_steps=32)
    smooth = integrated_hessians(cross_encoder(), read(), baseline="zero", max_steps=32)
    assert abs(found.gap) > 20 * abs(smooth.gap)
