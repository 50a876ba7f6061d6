"""A language model reads a pair inside its prompt, as its owners' code builds it, and scores as that does."""

import json

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bert import write_bert
from tiny_qwen3 import write_bytes_tokenizer, write_qwen3

from backlight.errors import InputError
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, PairBatch
from backlight.models.prompts import INSTRUCTION, PromptReader
from backlight.models.ranker import load_ranker
from backlight.models.tokens import Tokenizer

PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
PAIRS = [
    ("how do plants make food?", "green plants make food from light, water and air."),
    ("naïve 東京\n", " the answer\n\nis no "),
    ("light", ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_qwen3(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture(scope="module")
def theirs(folder):
    """The tokenizer as transformers reads it."""
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def reader(folder):
    return reader_of(folder)


def reader_of(folder, length=400):
    return PromptReader(Tokenizer(folder, length))


def official_ids(tokenizer, query, document, length=400, instruction=INSTRUCTION):
    """Return the tokens as the model's owners make them: prefix and suffix apart, the rest cut at its end."""
    prefix, suffix = (tokenizer.encode(part, add_special_tokens=False) for part in (PREFIX, SUFFIX))
    body = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    return prefix + tokenizer.encode(body, add_special_tokens=False)[: length - len(prefix) - len(suffix)] + suffix


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_becomes_the_tokens_of_the_official_prompt(reader, theirs, pair):
    (found,) = reader([pair])
    assert found.ids.tolist() == official_ids(theirs, *pair)
    assert theirs.decode(found.ids) == (
        f"{PREFIX}<Instruct>: {INSTRUCTION}\n<Query>: {pair[0]}\n<Document>: {pair[1]}{SUFFIX}"
    )
    assert found.left_out == (0, 0) and found.lengths == (len(found.ids),)
    assert found.positions.tolist() == list(range(len(found))) and not found.type_ids.any()


@pytest.mark.parametrize("pair", PAIRS)
def test_tokens_know_whose_they_are_and_where(reader, pair):
    (found,) = reader([pair])
    for side, text in ((QUERY, pair[0]), (DOCUMENT, pair[1])):
        spans = found.offsets[found.of_side(side)]
        covered = {place for start, end in spans for place in range(start, end)}
        assert covered == set(range(len(text)))
        assert (spans[:, 0] < spans[:, 1]).all()
    added = found.of_side(ADDED)
    assert not found.offsets[added].any()
    assert {"<|im_start|>", "<|im_end|>", "<think>"} < {found.pieces[place] for place in added}
    assert len(added) + len(found.of_side(QUERY)) + len(found.of_side(DOCUMENT)) == len(found)


@given(query=st.text(max_size=12), document=st.text(max_size=12))
@settings(max_examples=50, deadline=None)
def test_every_character_is_held_by_a_token_of_its_text(reader, query, document):
    (found,) = reader([(query, document)])
    for side, text in ((QUERY, query), (DOCUMENT, document)):
        spans = found.offsets[found.of_side(side)].tolist()
        assert {place for start, end in spans for place in range(start, end)} == set(range(len(text)))


def test_a_long_document_loses_its_end(folder, theirs):
    query, document = "food", "green plants make food " * 40
    (whole,), (cut,) = reader_of(folder, 10_000)([(query, document)]), reader_of(folder, 140)([(query, document)])
    assert cut.ids.tolist() == official_ids(theirs, query, document, 140)
    assert len(cut) == 140 and cut.left_out == (0, len(whole) - 140)
    assert cut.characters_read(QUERY) == (0, 4)
    start, end = cut.characters_read(DOCUMENT)
    assert start == 0 and 0 < end < len(document)


def test_windows_cover_a_long_document(folder, reader):
    query, document = "food", "green plants make food " * 20
    narrow = reader_of(folder, 140)
    (whole,) = reader_of(folder, 10_000)([(query, document)])
    windows = narrow.windows(query, document, stride=20)
    assert np.array_equal(windows[0].ids, narrow([(query, document)])[0].ids)
    read = [window.offsets[window.of_side(DOCUMENT)] for window in windows]
    total = len(whole.of_side(DOCUMENT))
    assert len(windows) > 2 and all(len(window) <= 140 for window in windows)
    assert {tuple(span) for part in read for span in part.tolist()} == {
        tuple(span) for span in whole.offsets[whole.of_side(DOCUMENT)].tolist()
    }
    assert [window.left_out for window in windows] == [(0, total - len(part)) for part in read]
    assert np.array_equal(read[0][20:], read[1][: len(read[0]) - 20])
    assert len(reader.windows(*PAIRS[0])) == len(reader.windows(*PAIRS[2])) == 1


def test_what_does_not_fit_is_refused(folder):
    reader = reader_of(folder, 140)
    with pytest.raises(InputError, match="the query must leave room for the document among 140 tokens, got"):
        reader([("plants " * 100, "food")])
    with pytest.raises(InputError, match=r"stride must be from 1 to the .* tokens of a window, got 0"):
        reader.windows(*PAIRS[0], stride=0)
    with pytest.raises(InputError, match=r"max_length must leave room beside the prompt's .* tokens, got 20"):
        reader_of(folder, 20)


def test_answers_are_single_tokens(folder, reader):
    yes, no = reader.answers()
    pieces = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert (yes, no) == (pieces["yes"], pieces["no"])
    with pytest.raises(InputError, match="the answer certainly must be one token, got"):
        reader.answers(yes="certainly")


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_scores_equal_those_of_the_official_code(folder, theirs, tmp_path, kind):
    folder = write_qwen3(tmp_path, kind=kind)
    ranker = load_ranker(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    scores = ranker.scores_of(ranker.read(PAIRS))
    for pair, score, shown in zip(PAIRS, scores, ranker.activate(scores)):
        with torch.no_grad():
            logits = model(torch.tensor([official_ids(theirs, *pair)])).logits[0, -1]
        both = torch.stack([logits[theirs.convert_tokens_to_ids(answer)] for answer in ("no", "yes")])
        assert score == pytest.approx((both[1] - both[0]).item(), rel=1e-4, abs=1e-5)
        assert shown == pytest.approx(both.log_softmax(0)[1].exp().item(), rel=1e-5)
    assert ranker.score_name == "logit of yes rather than no"


def test_slopes_reach_the_words_of_both_texts(folder):
    ranker = load_ranker(folder)
    batch = PairBatch.of(ranker.read(PAIRS[:2]))
    scores, slopes = ranker.gradients(batch)
    assert slopes.any(axis=1).all()
    np.testing.assert_allclose(scores, ranker.score(batch), rtol=1e-4, atol=1e-5)


def test_the_score_builds_up_layer_by_layer(folder):
    ranker = load_ranker(folder)
    batch = PairBatch.of(ranker.read(PAIRS))
    steps = ranker.build_up(batch)
    assert steps.shape == (3, len(PAIRS))
    np.testing.assert_allclose(steps[-1], ranker.score(batch), rtol=1e-4, atol=1e-5)
    words = ranker.embed(batch)[np.cumsum(batch.lengths) - 1]  # what the head would make of the last tokens' words
    normal = (
        words / np.sqrt((words**2).mean(1, keepdims=True) + 1e-6) * ranker.encoder.parameters()["norm.weight"].numpy()
    )
    expected = normal @ ranker.head.parameters()["score.weight"].numpy()[0]
    np.testing.assert_allclose(steps[0], expected, rtol=1e-4, atol=1e-5)


def test_an_instruction_takes_the_place_of_the_usual_one(folder, theirs, tmp_path):
    (found,) = load_ranker(folder, instruction="find food").read(PAIRS[:1])
    assert found.ids.tolist() == official_ids(theirs, *PAIRS[0], instruction="find food")
    other = write_qwen3(tmp_path)
    says = {"prompts": {"web": "find light"}, "default_prompt_name": "web"}
    (other / "config_sentence_transformers.json").write_text(json.dumps(says))
    (found,) = load_ranker(other).read(PAIRS[:1])
    assert found.ids.tolist() == official_ids(theirs, *PAIRS[0], instruction="find light")
    with pytest.raises(InputError, match=r"instruction must be left out: the model in .* reads none"):
        load_ranker(write_bert(tmp_path / "bert"), instruction="find food")


def test_a_classifier_reads_the_same_prompt(theirs, tmp_path):
    folder = write_qwen3(tmp_path, architecture="Qwen3ForSequenceClassification", num_labels=1, pad_token_id=0)
    ranker = load_ranker(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    (score,) = ranker.scores_of(ranker.read(PAIRS[:1]))
    with torch.no_grad():
        expected = model(torch.tensor([official_ids(theirs, *PAIRS[0])])).logits.item()
    assert score == pytest.approx(expected, rel=1e-5)
    assert ranker.score_name == "logit"


def test_the_answers_of_sentence_transformers_are_read(tmp_path):
    folder = write_qwen3(tmp_path)
    modules = [{"type": "a.Transformer", "path": ""}, {"type": "a.LogitScore", "path": "1_LogitScore"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_LogitScore").mkdir()
    usual = load_ranker(write_qwen3(tmp_path / "usual"))
    no, yes = usual.reader.answers()
    says = {"true_token_id": yes, "false_token_id": no}
    (folder / "1_LogitScore" / "config.json").write_text(json.dumps(says))
    turned = load_ranker(folder)
    pairs = turned.read(PAIRS)
    np.testing.assert_allclose(turned.scores_of(pairs), -usual.scores_of(pairs), rtol=1e-5)
    (folder / "1_LogitScore" / "config.json").write_text(json.dumps({"true_token_id": yes}))
    with pytest.raises(InputError, match=f"must say the ids of two answers, got {yes} and None"):
        load_ranker(folder)


def test_a_language_model_with_pooling_is_a_bi_encoder(tmp_path):
    folder = write_qwen3(tmp_path)
    modules = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_lasttoken": True}))
    assert load_ranker(folder).score_name == "cosine of lasttoken-pooled embeddings"


def test_the_tokenizer_of_the_tests_is_byte_level(tmp_path):
    write_bytes_tokenizer(tmp_path)
    (encoding,) = Tokenizer(tmp_path, 50).encoded(["東"])
    assert len(encoding.ids) == 3 and {tuple(span) for span in encoding.offsets} == {(0, 1)}
