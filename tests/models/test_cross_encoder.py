"""A cross-encoder reads query and document together, and gives what transformers and sentence-transformers give."""

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from tiny_bert import cross_encoder, edited, relative_error, write_cross_encoder

from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.ranker import load_ranker

PAIRS = [
    ("how do plants make food", "green plants make food from sunlight, water and air."),
    ("a leaf", "unlike cells"),
    ("green " * 12, "food from the leaf " * 12),
]


def theirs(folder, pairs):
    """Return transformers' leaf, mask and logits for padded pairs."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    rows = [[torch.tensor(array) for array in (pair.ids, pair.type_ids)] for pair in pairs]
    ids, types = (torch.nn.utils.rnn.pad_sequence(part, batch_first=True) for part in zip(*rows))
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(pair), dtype=torch.long) for pair in pairs], True)
    leaf = model.get_input_embeddings()(ids).detach().requires_grad_()
    logits = model(inputs_embeds=leaf, attention_mask=mask, token_type_ids=types).logits
    return leaf, mask.bool(), logits


def test_scores_and_slopes_equal_transformers(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    pairs = ranker.read(PAIRS)
    scores, slopes = ranker.gradients(PairBatch.of(pairs))
    leaf, mask, logits = theirs(tmp_path, pairs)
    (expected,) = torch.autograd.grad(logits.sum(), [leaf])
    np.testing.assert_allclose(scores, logits[:, 0].detach().numpy(), rtol=1e-5, atol=1e-6)
    assert relative_error(slopes, expected[mask].numpy()) < 1e-5
    np.testing.assert_allclose(ranker.score(PairBatch.of(pairs)), scores, rtol=1e-5, atol=1e-6)


def test_scores_equal_those_of_sentence_transformers(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    transformers.BertTokenizerFast.from_pretrained(tmp_path).save_pretrained(tmp_path)
    model = sentence_transformers.CrossEncoder(str(tmp_path), max_length=32)
    scores = ranker.scores_of(ranker.read(PAIRS))
    np.testing.assert_allclose(ranker.activate(scores), model.predict(PAIRS), rtol=1e-5)
    with pytest.raises(InputError, match=r"runs on PyTorch: load its folder with Reranker\.from_pretrained"):
        Reranker.of(model).explain(*PAIRS[0], method="decompx")
    with pytest.raises(InputError, match="has one score, label 0; got 7"):
        load_ranker(tmp_path, label=7)


def test_leaving_tokens_out_equals_a_mask(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    (pair,) = ranker.read(PAIRS[:1])
    keep = np.random.default_rng(0).random(len(pair)) < 0.7
    keep[0] = True
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    inputs = {"input_ids": torch.tensor(pair.ids)[None], "token_type_ids": torch.tensor(pair.type_ids)[None]}
    with torch.no_grad():
        expected = model(**inputs, attention_mask=torch.tensor(keep)[None].long()).logits.item()
    assert ranker.score(PairBatch.of([pair.kept(keep)])) == pytest.approx(expected, rel=1e-5)


def test_the_inside_equals_transformers(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    (pair,) = ranker.read(PAIRS[:1])
    inside = ranker.inside(PairBatch.of([pair]), slopes=True)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path, attn_implementation="eager")
    inputs = {"input_ids": torch.tensor(pair.ids)[None], "token_type_ids": torch.tensor(pair.type_ids)[None]}
    found = model.eval()(**inputs, output_hidden_states=True, output_attentions=True)
    places = [*found.hidden_states, *found.attentions]
    slopes = [slope[0].numpy() for slope in torch.autograd.grad(found.logits.sum(), places)]
    for number, (ours, expected) in enumerate(zip(inside.states, found.hidden_states, strict=True)):
        assert relative_error(ours, expected[0].detach().numpy()) < 1e-5
        np.testing.assert_allclose(inside.state_slopes[number], slopes[number], rtol=1e-3, atol=1e-5)
    for number, (ours, expected) in enumerate(zip(inside.attentions, found.attentions, strict=True)):
        np.testing.assert_allclose(ours[0], expected[0].detach().numpy(), rtol=1e-4, atol=1e-6)
        expected_slope = slopes[len(inside.states) + number]
        np.testing.assert_allclose(inside.attention_slopes[number][0], expected_slope, rtol=1e-3, atol=1e-5)


def test_each_token_has_a_side():
    (pair,) = cross_encoder().read([("green plants", "make food")])
    assert pair.sides.tolist() == [ADDED, QUERY, QUERY, ADDED, DOCUMENT, DOCUMENT, ADDED]


def test_a_classifier_of_several_labels_asks_which_is_the_score(tmp_path):
    folder = write_cross_encoder(tmp_path, num_labels=3)
    with pytest.raises(InputError, match="has 3 labels, LABEL_0, LABEL_1, LABEL_2, where a reranker has one"):
        load_ranker(folder)
    with pytest.raises(InputError, match="label must be from 0 to 2, got 3"):
        load_ranker(folder, label=3)
    ranker = load_ranker(folder, label=1)
    pairs = ranker.read(PAIRS)
    assert ranker.score_name == "logit of LABEL_1"
    np.testing.assert_allclose(ranker.scores_of(pairs), theirs(folder, pairs)[2][:, 1].detach().numpy(), rtol=1e-4)


def test_the_activation_is_what_the_folder_says(tmp_path):
    folder = write_cross_encoder(tmp_path)
    assert load_ranker(folder).activation == "sigmoid"
    identity = {"activation_fn": "torch.nn.modules.linear.Identity"}
    assert load_ranker(edited(folder, sentence_transformers=identity)).activation == "identity"
    edited(folder, sentence_transformers={"activation_fn": "torch.nn.modules.activation.Tanh"})
    with pytest.raises(InputError, match=r"shows its score by .*Tanh: backlight knows identity, sigmoid"):
        load_ranker(folder)
