"""Traps that elsewhere explain the wrong thing in silence: shown on PyTorch and transformers, then closed here."""

import dataclasses
import warnings
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder

from backlight.errors import GraphError
from backlight.explain.attribution import Attribution
from backlight.explain.checks import check_same_scores
from backlight.explain.methods.controls import embedding_magnitude
from backlight.explain.methods.gradients import saliency
from backlight.explain.methods.integrated_gradients import integrated_gradients
from backlight.explain.methods.registry import METHODS
from backlight.explain.ranking import rank_and_explain
from backlight.models.bi_encoder import BiEncoder
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.bert import Bert
from backlight.models.encoders.encoder import Cut
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker

QUERY = "how do plants make food"
TEXT = "green plants make food from sunlight, water and air; the leafs of a cell"
CONTROLS = {"embedding-magnitude", "random"}
BY_WORD = [name for name in METHODS if name != "occlusion-sentence"]  # whose values belong to sentences
BY_GRADIENT = (
    "saliency",
    "saliency-l2",
    "gradient-x-input",
    "integrated-gradients",
    "smoothgrad",
    "smoothgrad-mean",
    "layer-gradient-x-activation",
    "attention-x-gradient",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def ranker(folder):
    return load_ranker(folder, "tiny")


@pytest.fixture(scope="module")
def pair(ranker):
    return ranker.read([(QUERY, TEXT)])[0]


@pytest.fixture(scope="module")
def theirs(folder):
    return transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()


@cache
def explained(method, query=QUERY, text=TEXT) -> Attribution:
    return rank_and_explain(cross_encoder(), query, [text], method=method).documents[0].attribution


def inputs_of(pair) -> dict:
    """Return what transformers calls a pair."""
    ids, types = (torch.tensor(part)[None] for part in (pair.ids, pair.type_ids))
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": torch.ones_like(ids)}


def words_of(found) -> list[float]:
    return [word.value for text in (found.query, found.document) for word in text.words]


def test_a_clone_of_embeddings_has_no_gradient_in_pytorch_and_is_an_error_here(theirs, ranker, pair):
    given = inputs_of(pair)
    clone = theirs.get_input_embeddings()(given["input_ids"]).clone()
    theirs(inputs_embeds=clone, token_type_ids=given["token_type_ids"]).logits.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf"):
        assert clone.grad is None

    class Cloned(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            return super().pair_scores(batch, self.encoder.embed_words(batch.ids).clone(), trace)

    with pytest.raises(GraphError, match="no gradient reached them; nothing was explained"):
        saliency(Cloned.of(ranker), [pair])


def test_a_leaf_that_the_model_was_not_given_has_no_gradient_in_pytorch_and_is_an_error_here(theirs, ranker, pair):
    given = inputs_of(pair)
    leaf = theirs.get_input_embeddings()(given["input_ids"]).detach().requires_grad_()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        theirs(**given).logits.sum().backward()
        assert leaf.grad is None and not told

    class Unheard(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            return super().pair_scores(batch, None, trace)

    for method in BY_GRADIENT[:6]:
        with pytest.raises(GraphError, match="no gradient reached them; nothing was explained"):
            METHODS[method].explain(Unheard.of(ranker), [pair])


def test_embeddings_without_segments_score_otherwise_in_transformers_and_are_an_error_here(theirs, ranker, pair):
    given = inputs_of(pair)
    embeddings = theirs.get_input_embeddings()(given["input_ids"])
    with warnings.catch_warnings(record=True) as told, torch.no_grad():
        warnings.simplefilter("always")
        ordinary = theirs(**given).logits.item()
        without = theirs(inputs_embeds=embeddings, attention_mask=given["attention_mask"]).logits.item()
    assert abs(without - ordinary) > 1e-3 and not told
    assert ranker.score(PairBatch.of([pair]))[0] == pytest.approx(ordinary, rel=1e-5)

    class Segmentless(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            ordinary = inputs_embeds is None and trace is None
            same = batch if ordinary else dataclasses.replace(batch, type_ids=0 * batch.type_ids)
            return super().pair_scores(same, inputs_embeds, trace)

    for method in BY_GRADIENT:
        with pytest.raises(GraphError, match="the two do not read the same input"):
            METHODS[method].explain(Segmentless.of(ranker), [pair])


def test_padding_without_a_mask_takes_the_gradient_in_transformers_and_here_there_is_no_padding(theirs, ranker):
    short, long = ranker.read([("a leaf", "green"), (QUERY, TEXT)])
    given = {name: torch.nn.functional.pad(part, (0, 32 - len(short))) for name, part in inputs_of(short).items()}
    leaf = theirs.get_input_embeddings()(given.pop("input_ids")).detach().requires_grad_()
    slopes = {}
    for masked in (False, True):
        given = given if masked else {"token_type_ids": given["token_type_ids"]}
        mask = torch.tensor([[1] * len(short) + [0] * (32 - len(short))])
        score = theirs(inputs_embeds=leaf, attention_mask=mask if masked else None, **given).logits
        (found,) = torch.autograd.grad(score.sum(), [leaf])
        slopes[masked] = found[0].abs().sum(1)
    assert slopes[False][len(short) :].sum() > 0.3 * slopes[False].sum()
    assert not slopes[True][len(short) :].any()
    together = saliency(ranker, [short, long])[0]
    values = [token.value for text in (together.query, together.document) for token in text.tokens]
    values += [token.value for token in together.special]
    assert len(values) == len(short)
    np.testing.assert_allclose(sorted(values), sorted(slopes[True][: len(short)].tolist()), rtol=1e-4)


def test_attentions_are_an_empty_tuple_under_sdpa_in_transformers_and_always_there_here(theirs, ranker, pair):
    with torch.no_grad():
        found = theirs(**inputs_of(pair), output_attentions=True)
    assert theirs.config._attn_implementation == "sdpa" and found.attentions == ()
    inside = ranker.inside(PairBatch.of([pair]))
    assert [layer[0].shape for layer in inside.attentions] == [(3, len(pair), len(pair))] * 2
    np.testing.assert_allclose(inside.attentions[0][0].sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_left_as_it_was(method, ranker, pair):
    """captum leaves an interpretable embedding in a model that nobody swaps back: see test_captum.py."""
    parts = (ranker.encoder, ranker.head)
    before = [{name: weight.numpy().tobytes() for name, weight in part.parameters().items()} for part in parts]
    held = [dict(vars(part)) for part in (ranker, *parts)]
    score = ranker.score(PairBatch.of([pair]))
    METHODS[method].explain(ranker, [pair])
    assert np.array_equal(ranker.score(PairBatch.of([pair])), score)
    assert [{name: weight.numpy().tobytes() for name, weight in part.parameters().items()} for part in parts] == before
    assert all(weight.grad is None for part in parts for weight in part.parameters().values())
    for part, attributes in zip((ranker, *parts), held):
        assert {name: value for name, value in vars(part).items() if name in attributes} == attributes
        assert not {name for name in vars(part) if not name.startswith("_")} - set(attributes)


@pytest.mark.parametrize("method", BY_GRADIENT)
def test_a_gradient_of_zero_is_an_error(method, ranker, pair):
    class Flat(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            scores = super().pair_scores(batch, inputs_embeds, trace)
            places = [] if inputs_embeds is None else [inputs_embeds]
            if isinstance(trace, Cut):
                places.append(trace.states)
            elif trace is not None:
                places += [*trace.states, *(part for layer in trace.attentions for part in layer)]
            return scores.detach() + sum((0.0 * place.sum() for place in places), scores.detach() * 0.0)

    with pytest.raises(GraphError, match="must not be zero everywhere, and it is; nothing was explained"):
        METHODS[method].explain(Flat.of(ranker), [pair])


def test_the_size_of_embeddings_is_the_same_for_two_queries_to_the_last_bit():
    first, second = (explained("embedding-magnitude", query).document for query in (QUERY, "a leaf of water"))
    assert [word.value for word in first.words] == [word.value for word in second.words]
    for method in set(METHODS) - CONTROLS:
        values = [[word.value for word in explained(method, q).document.words] for q in (QUERY, "a leaf of water")]
        assert not np.allclose(*values, rtol=1e-3, atol=0), method


def test_randomising_layer_after_layer_exposes_the_size_of_embeddings():
    """What explains a score must change when the model forgets, from the last layer to the first."""
    real = real_ranker()
    pairs = real.read([(QUERY, TEXT), ("what moves the sea", "The tides follow the Moon, and the Moon the Earth.")])
    layers = real.encoder.config.num_hidden_layers
    forgetful = [randomised(real, range(layers - count, layers)) for count in (1, 3, layers)]
    ranks = {}
    for method in (embedding_magnitude, saliency):
        trained = method(real, pairs)
        ranks[method] = [
            [rank_correlation(words_of(a), words_of(b)) for a, b in zip(trained, method(model, pairs))]
            for model in forgetful
        ]
    assert ranks[embedding_magnitude] == [[pytest.approx(1.0)] * 2] * 3
    assert max(ranks[saliency][-1]) < 0.9
    assert np.mean(ranks[saliency][-1]) < np.mean(ranks[saliency][0])


def test_a_saturated_score_has_no_gradient_after_the_sigmoid_and_has_one_before(folder, pair, ranker):
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        theirs.classifier.bias += 40.0
    given = inputs_of(pair)
    leaf = theirs.get_input_embeddings()(given.pop("input_ids")).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(theirs(inputs_embeds=leaf, **given).logits.sigmoid().sum(), [leaf])
    assert not slopes.any()

    class Sure(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            return super().pair_scores(batch, inputs_embeds, trace) + 40.0

    sure = Sure.of(ranker)
    (found,), (expected,) = saliency(sure, [pair]), saliency(ranker, [pair])
    assert sure.activate(np.array([found.score]))[0] == 1.0
    np.testing.assert_allclose(words_of(found), words_of(expected), rtol=1e-4)


def test_the_raw_logit_is_explained_and_values_add_up_to_it_unscaled():
    """Where the sigmoid is explained, or values are scaled to a length of 1, they add up to nothing."""
    (ranked,) = rank_and_explain(cross_encoder(), QUERY, [TEXT], method="integrated-gradients").documents
    found = ranked.attribution
    total = sum(words_of(found)) + sum(token.value for token in found.special)
    assert ranked.activated == pytest.approx(1 / (1 + np.exp(-ranked.score)))
    assert total == pytest.approx(found.score - found.settings["baseline_score"], abs=1e-4)
    activated = cross_encoder().activate(np.array([found.score, found.settings["baseline_score"]]))
    assert abs(total - (activated[0] - activated[1])) > 0.01


@pytest.mark.parametrize("method", BY_WORD)
def test_sub_words_are_merged(method):
    found = explained(method).document
    by_text = {word.text: word for word in found.words}
    assert by_text["leafs"].tokens == 2 and "##s" not in by_text
    if found.tokens:
        parts = [token.value for token in found.tokens if token.text in ("leaf", "##s")]
        assert by_text["leafs"].value == pytest.approx(sum(parts))


@pytest.mark.parametrize("method", METHODS)
def test_what_is_beyond_the_models_length_is_told(method):
    found = explained(method, "a leaf", "green plants make food. " * 12).document
    assert found.truncation.tokens_left_out == 5 * 12 - found.truncation.tokens_read > 0
    read = explained("saliency", "a leaf", found.text).document.words
    assert found.truncation.words_left_out == 4 * 12 - sum(not word.is_mark for word in read)
    assert found.words[-1].end == found.truncation.characters_read < len(found.text)


@pytest.mark.parametrize("method", METHODS)
def test_the_score_that_is_explained_is_the_ordinary_calls(method, theirs, pair):
    found = METHODS[method].explain(cross_encoder(), [pair])[0]
    with torch.no_grad():
        assert found.score == pytest.approx(theirs(**inputs_of(pair)).logits.item(), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_stands_in_for_the_method_that_was_asked_for(method):
    found = explained(method)
    assert (found.method, found.fallback) == (method, False)
    assert found.signed == METHODS[method].signed


@pytest.mark.parametrize("method", BY_WORD)
@pytest.mark.parametrize("control", sorted(CONTROLS))
def test_no_method_gives_the_values_of_a_control(method, control):
    shares = [np.array(words_of(explained(name))) for name in (method, control)]
    shares = [values / np.abs(values).sum() for values in shares]
    assert np.allclose(*shares, rtol=1e-2) == (method == control)


def test_many_steps_and_long_texts_stay_within_a_pass():
    """What is laid end to end has 2048 tokens at most, however many steps there are: memory does not grow."""
    sizes = []

    class Watched(Rewired):
        def pair_scores(self, batch, inputs_embeds=None, trace=None):
            sizes.append(len(batch.ids))
            return super().pair_scores(batch, inputs_embeds, trace)

    watched = Watched.of(cross_encoder())
    pairs = watched.read([(QUERY, TEXT)] * 5)
    found = integrated_gradients(watched, pairs, steps=256, max_steps=256)
    total = 5 * 256 * len(pairs[0])
    assert max(sizes) <= 2048 and len(sizes) == 3 + -(-total // (2048 // len(pairs[0]) * len(pairs[0])))
    assert {one.passes for one in found} == {3 + 2 * 256}


def test_a_score_that_is_not_a_number_is_never_the_same_score(pair):
    with pytest.raises(GraphError, match="do not read the same input"):
        check_same_scores([float("nan")], [0.1], [pair])


class Rewired(CrossEncoder):
    """A cross-encoder whose score is made otherwise."""

    @classmethod
    def of(cls, ranker: CrossEncoder) -> CrossEncoder:
        return cls(**{field.name: getattr(ranker, field.name) for field in dataclasses.fields(ranker)})


def randomised(ranker: BiEncoder, layers) -> BiEncoder:
    """Return the model with the weights of some layers in another order."""
    rng, names = np.random.default_rng(0), tuple(f"encoder.layer.{number}." for number in layers)
    weights = {name: weight.numpy() for name, weight in ranker.encoder.state_dict().items()}
    shuffled = {
        name: rng.permutation(weight.ravel()).reshape(weight.shape) if name.startswith(names) else weight
        for name, weight in weights.items()
    }
    return dataclasses.replace(ranker, encoder=Bert(ranker.encoder.config, shuffled))


def rank_correlation(first, second) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])
