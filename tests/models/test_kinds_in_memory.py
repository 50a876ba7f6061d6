"""What models of a kind show besides gradients: matched words, terms with weights, labels, answers."""

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from models_in_memory import (
    DOCUMENTS,
    PAIRS,
    QUERY,
    bert_tokenizer,
    bi_encoder,
    causal,
    classifier,
    cross_encoder,
    late_interaction,
    sparse_encoder,
)

from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.pairs import ADDED, DOCUMENT, PairBatch
from backlight.models.pairs import QUERY as QUERY_SIDE
from backlight.models.ranker import load_ranker

FIXED = {"strategy": "fixed", "length": 16, "attend": False, "token": None}


def words_of_tokens(words, offsets) -> list[int | None]:
    """Return the number of the word that each token lies in; None for special tokens."""
    return [
        next((n for n, word in enumerate(words) if a < b and word.start <= a and b <= word.end), None)
        for a, b in offsets.tolist()
    ]


@pytest.mark.parametrize("similarity", ["maxsim", "meanmaxsim"])
def test_the_matrix_of_late_interaction_has_each_tokens_best_match(tmp_path, similarity):
    model = late_interaction(tmp_path, similarity=similarity)
    reranker = Reranker.of(model)
    found = reranker.matrix(*PAIRS[0], method="maxsim")
    (pair,) = reranker.scorer.read(PAIRS[:1])
    query, document = model.encode_query([QUERY])[0], model.encode_document(DOCUMENTS[:1])[0]
    kept = ~np.isin(pair.ids[pair.lengths[0] :], model.tokenizer.convert_tokens_to_ids([",", "."]))
    offsets = pair.offsets[: pair.lengths[0]], pair.offsets[pair.lengths[0] :][kept]
    rows, columns = (words_of_tokens(words, own) for words, own in zip((found.query, found.document), offsets))
    expected, special = np.zeros((len(found.query), len(found.document))), 0.0
    share = len(query) if similarity == "meanmaxsim" else 1
    for row, similarities in zip(rows, (query @ document.T / share).tolist()):
        best = int(np.argmax(similarities))
        if row is None or columns[best] is None:
            special += similarities[best]
        else:
            expected[row, columns[best]] += similarities[best]
    np.testing.assert_allclose(found.values, expected, atol=1e-5)
    assert found.settings["special_tokens"] == pytest.approx(special, abs=1e-5)
    assert found.score == pytest.approx(model.similarity(query[None], document[None]).item(), abs=1e-5)
    assert abs(found.gap) < 1e-5, "all matches add up to the score"


def test_what_a_query_is_filled_up_with_counts_as_special(tmp_path):
    found = Reranker.of(late_interaction(tmp_path, expansion=FIXED)).matrix(*PAIRS[0], method="maxsim")
    assert abs(found.gap) < 1e-5 and found.settings["special_tokens"] > 0


def test_only_late_interaction_matches_tokens(tmp_path):
    for model in (bi_encoder(tmp_path / "bi"), cross_encoder(tmp_path / "cross")):
        with pytest.raises(InputError, match=r"maxsim needs a model of late interaction, and .* use joint-occlusion"):
            Reranker.of(model).matrix(*PAIRS[0], method="maxsim")


def test_terms_of_a_sparse_encoder_make_its_score(tmp_path):
    model = sparse_encoder(tmp_path)
    found = Reranker.of(model).terms(*PAIRS[0])
    query, document = (one.to_dense()[0] for one in (model.encode_query([QUERY]), model.encode_document(DOCUMENTS[:1])))
    assert found.score == pytest.approx((query @ document).item(), rel=1e-5)
    assert sum(term.value for term in found.terms) == pytest.approx(found.score, rel=1e-5)
    heaviest = document.topk(4)
    assert [term.text for term in found.of_document(4)] == model.tokenizer.convert_ids_to_tokens(
        heaviest.indices.tolist()
    )
    np.testing.assert_allclose([term.document for term in found.of_document(4)], heaviest.values, rtol=1e-5)
    known = set(model.tokenizer(DOCUMENTS[0], add_special_tokens=False)["input_ids"])
    texts = set(model.tokenizer.convert_ids_to_tokens(sorted(known)))
    assert {term.text for term in found.terms if term.in_document} == texts & {term.text for term in found.terms}
    assert found.terms[0].value == max(term.value for term in found.terms)
    assert found.rows()[0]["text"] == found.terms[0].text


def test_only_sparse_encoders_have_terms(tmp_path):
    for model in (bi_encoder(tmp_path / "bi"), cross_encoder(tmp_path / "cross")):
        with pytest.raises(InputError, match="terms needs a SparseEncoder"):
            Reranker.of(model).terms(*PAIRS[0])


def test_no_more_terms_count_than_the_model_keeps(tmp_path):
    model = sparse_encoder(tmp_path)
    model.max_active_dims = 5
    reranker = Reranker.of(model)
    assert len(reranker.terms(*PAIRS[0]).of_document()) == 5
    queries, documents = model.encode_query([QUERY]), model.encode_document(DOCUMENTS)
    expected = queries.to_dense() @ documents.to_dense().T
    np.testing.assert_allclose(reranker.predict(PAIRS), expected[0], rtol=1e-5)
    scores, _ = reranker.scorer.gradients(PairBatch.of(reranker.scorer.read(PAIRS)))
    np.testing.assert_allclose(scores, reranker.predict(PAIRS), rtol=1e-5)


NAMES = {0: "contradiction", 1: "entailment", 2: "neutral"}


@pytest.mark.parametrize("label", [1, "1", "entailment"])
def test_a_label_is_chosen_by_number_or_name(label):
    model, tokenizer = (
        classifier(num_labels=3, id2label=NAMES, label2id={v: k for k, v in NAMES.items()}),
        bert_tokenizer(),
    )
    reranker = Reranker.of(model, tokenizer=tokenizer, label=label)
    assert reranker.scorer.score_name == "logit of entailment"
    logits = model(**tokenizer(*PAIRS[0], return_tensors="pt")).logits[0]
    assert reranker.predict(PAIRS[0], activation="identity") == pytest.approx(logits[1].item(), abs=1e-5)


def test_labels_are_listed_where_none_or_a_wrong_one_is_chosen(tmp_path):
    names = {"id2label": NAMES, "label2id": {name: number for number, name in NAMES.items()}}
    model, library = classifier(num_labels=3, **names), cross_encoder(tmp_path, num_labels=3, **names)
    for taken in (lambda **options: Reranker.of(model, tokenizer=bert_tokenizer(), **options),
                  lambda **options: Reranker.of(library, **options)):  # fmt: skip
        with pytest.raises(InputError, match=r"has 3 labels, contradiction, entailment, neutral, .*label=0 to 2"):
            taken()
        with pytest.raises(InputError, match=r"label must be one of contradiction, entailment, neutral, .* got maybe"):
            taken(label="maybe")
        with pytest.raises(InputError, match="label must be from 0 to 2, got 3"):
            taken(label=3)
    assert Reranker.of(library, label="neutral").scorer.score_name == "logit of neutral"


def test_a_regression_head_is_shown_as_it_is():
    model = classifier(problem_type="regression")
    reranker = Reranker.of(model, tokenizer=bert_tokenizer())
    assert reranker.scorer.score_name == "prediction"
    np.testing.assert_array_equal(reranker.predict(PAIRS), reranker.predict(PAIRS, activation="identity"))


def test_a_language_model_scores_as_our_own_engine_does(tmp_path):
    model, tokenizer = causal(tmp_path)
    ours, theirs = load_ranker(tmp_path), Reranker.of(model, tokenizer=tokenizer).scorer
    batch = PairBatch.of(ours.read(PAIRS))
    assert [pair.ids.tolist() for pair in theirs.read(PAIRS)] == [pair.ids.tolist() for pair in batch.pairs]
    np.testing.assert_allclose(theirs.score(batch), ours.score(batch), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(theirs.gradients(batch)[1], ours.gradients(batch)[1], atol=1e-5, rtol=1e-3)
    mine, expected = theirs.state_gradients(batch, 1), ours.state_gradients(batch, 1)
    np.testing.assert_allclose(mine.gradients, expected.gradients, atol=1e-5, rtol=1e-3)


def test_one_answer_and_a_prompt_of_ones_own(tmp_path):
    model, tokenizer = causal(tmp_path)
    reranker = Reranker.of(
        model, tokenizer=tokenizer, prompt="Query: {query} Document: {document} Answer:", answers="yes"
    )
    text = f"Query: {QUERY} Document: {DOCUMENTS[0]} Answer:"
    middle, closing = (tokenizer(part)["input_ids"] for part in (text.removesuffix(" Answer:"), " Answer:"))
    logits = model(torch.tensor([middle + closing])).logits[0, -1]
    expected = logits[tokenizer.convert_tokens_to_ids("yes")].item()
    assert reranker.predict(PAIRS[0]) == pytest.approx(expected, abs=1e-5)
    assert reranker.scorer.score_name == "logit of yes"


def test_a_language_model_needs_a_prompt(tmp_path):
    config = transformers.GPT2Config(vocab_size=100, n_embd=24, n_layer=1, n_head=3)
    model = transformers.GPT2LMHeadModel(config)
    with pytest.raises(InputError, match=r"GPT2LMHeadModel .* needs prompt=, a text with {query} and {document}"):
        Reranker.of(model, tokenizer=bert_tokenizer())
    with pytest.raises(InputError, match=r"prompt must hold {query} and after it {document}, got '{document}"):
        Reranker.of(model, tokenizer=bert_tokenizer(), prompt="{document} {query}", answers=("a", "b"))


def test_a_prompt_is_no_word_of_the_text(tmp_path):
    model = bi_encoder(tmp_path, prompts={"query": "the food: ", "document": ""})
    reranker = Reranker.of(model)
    (pair,) = reranker.scorer.read(PAIRS[:1])
    assert [pair.pieces[i] for i in np.flatnonzero(pair.sides == ADDED)[:5]] == [
        "[CLS]",
        "the",
        "food",
        "[UNK]",
        "[SEP]",
    ]
    found = reranker.explain(*PAIRS[0], method="saliency", check=False)
    assert [word.text for word in found.query.words] == QUERY.split()


def test_windows_of_a_long_document_each_begin_with_its_prompt(tmp_path):
    model = bi_encoder(tmp_path, prompts={"query": "", "document": "a leaf "})
    document = "plants make food from sunlight and water . " * 20
    windows = Reranker.of(model).scorer.windows(QUERY, document)
    assert len(windows) > 2
    for window in windows:
        own = window.ids[window.lengths[0] :]
        assert window.lengths[1] <= 64
        assert model.tokenizer.convert_ids_to_tokens(own[:3].tolist()) == ["[CLS]", "a", "leaf"]
        places = window.of_side(DOCUMENT)
        start, end = window.offsets[places[0]]
        assert document[start:end] == window.pieces[places[0]]
    assert len(window.of_side(QUERY_SIDE)) == 5


CHAT = (
    "{% for message in messages %}{% if message.role == 'query' %}<|im_start|>user\nQuery: {{ message.content }}\n"
    "{% elif message.role == 'document' %}Document: {{ message.content }}<|im_end|>\n<|im_start|>assistant\n{% endif %}"
    "{% endfor %}"
)


def test_a_cross_encoder_that_is_a_language_model_reads_its_chat_template(tmp_path):
    _, tokenizer = causal(tmp_path)
    tokenizer.chat_template, tokenizer.padding_side, tokenizer.pad_token = CHAT, "left", "<|endoftext|>"
    tokenizer.save_pretrained(tmp_path)
    model = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu")
    reranker = Reranker.of(model)
    expected = model.predict(PAIRS, activation_fn=torch.nn.Identity(), batch_size=1)
    np.testing.assert_allclose(reranker.predict(PAIRS, activation="identity"), expected, atol=1e-5)
    batch = PairBatch.of(reranker.scorer.read(PAIRS))
    np.testing.assert_allclose(reranker.scorer.gradients(batch)[0], expected, atol=1e-5)
    (pair,) = reranker.scorer.read(PAIRS[:1])
    places = pair.of_side(DOCUMENT)
    assert "".join(DOCUMENTS[0][a:b] for a, b in pair.offsets[places]) == DOCUMENTS[0]


def test_a_compiled_or_wrapped_model_is_the_model_inside():
    model, tokenizer = classifier(), bert_tokenizer()
    plain = Reranker.of(model, tokenizer=tokenizer)
    for wrapped in (torch.compile(model, backend="eager"), torch.nn.DataParallel(model)):
        found = Reranker.of(wrapped, tokenizer=tokenizer)
        assert found.scorer.model.module is model
        np.testing.assert_array_equal(found.predict(PAIRS), plain.predict(PAIRS))


@pytest.mark.parametrize("make", [cross_encoder, bi_encoder, late_interaction])
def test_max_length_cuts_what_the_model_would_read(tmp_path, make):
    model = make(tmp_path)
    whole, short = Reranker.of(model), Reranker.of(model, max_length=12)
    assert short.scorer.max_tokens == 12
    (pair,) = short.scorer.read(PAIRS[:1])
    assert max(pair.lengths) == 12 and pair.left_out[DOCUMENT] > 0
    cut = DOCUMENTS[0][: pair.characters_read(DOCUMENT)[1]]
    expected = whole.predict((QUERY[: pair.characters_read(QUERY_SIDE)[1]], cut))
    assert short.predict(PAIRS[0], windows=None) == pytest.approx(expected, abs=1e-5)
