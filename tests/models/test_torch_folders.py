"""Folders of every kind are loaded for PyTorch as their own libraries load them, from a path alone."""

import json
import sys
import warnings

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from models_in_memory import DOCUMENTS, PAIRS, QUERY, bi_encoder, cross_encoder, late_interaction, sparse_encoder
from tiny_bert import write_bert, write_tokenizer
from tiny_qwen3 import write_qwen3

from backlight.adapters.torch_models.folders import sentence_class
from backlight.cli.arguments import add_model, reranker_of
from backlight.cli.main import Parser
from backlight.errors import InputError
from backlight.explain import reranker as explain_reranker
from backlight.explain.reranker import Reranker
from backlight.models.ranker import load_ranker

PROMPTS = {"query": "the food: ", "document": "a leaf "}
APART = {
    "bi-encoder": bi_encoder,
    "bi-encoder with prompts": lambda folder: bi_encoder(folder, prompts=PROMPTS),
    "bi-encoder by dot product": lambda folder: bi_encoder(folder, similarity_fn_name="dot"),
    "sparse encoder": sparse_encoder,
    "late interaction": late_interaction,
}


def their_scores(model) -> np.ndarray:
    with torch.no_grad():
        return model.similarity(model.encode_query([QUERY]), model.encode_document(DOCUMENTS))[0].numpy()


@pytest.mark.parametrize("kind", APART)
def test_a_folder_of_sentence_transformers_scores_as_it_does(kind, tmp_path):
    model = APART[kind](tmp_path / "parts")
    model.save(str(tmp_path / "model"))
    reranker = Reranker.from_pretrained(tmp_path / "model", engine="torch")
    np.testing.assert_allclose(reranker.predict(PAIRS), their_scores(model), rtol=1e-5, atol=1e-6)
    assert reranker.name == "model"
    best = reranker.rank(QUERY, DOCUMENTS, explain=1, budget=0.5).documents[0]
    assert best.attribution.document.words


def test_a_cross_encoder_with_modules_scores_as_it_does(tmp_path):
    model = cross_encoder(tmp_path / "parts")
    model.save(str(tmp_path / "model"))
    reranker = Reranker.from_pretrained(tmp_path / "model", engine="torch")
    np.testing.assert_allclose(reranker.predict(PAIRS), model.predict(PAIRS), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_a_language_model_is_asked_as_our_own_engine_asks_it(tmp_path):
    folder = write_qwen3(tmp_path)
    ours, theirs = (Reranker.from_pretrained(folder, engine=engine) for engine in ("backlight", "torch"))
    np.testing.assert_allclose(theirs.predict(PAIRS), ours.predict(PAIRS), rtol=1e-4)
    instructed = Reranker.from_pretrained(folder, engine="torch", instruction="find food")
    expected = Reranker.from_pretrained(folder, instruction="find food").predict(PAIRS)
    np.testing.assert_allclose(instructed.predict(PAIRS), expected, rtol=1e-4)


def test_an_encoder_alone_is_averaged_by_both_engines(tmp_path):
    folder = write_bert(tmp_path)
    ours, theirs = (Reranker.from_pretrained(folder, engine=engine) for engine in ("backlight", "torch"))
    np.testing.assert_allclose(theirs.predict(PAIRS), ours.predict(PAIRS), rtol=1e-5, atol=1e-6)


def test_our_own_engine_reads_the_prompts_of_queries_and_documents(tmp_path):
    model = bi_encoder(tmp_path / "parts", prompts=PROMPTS)
    model.save(str(tmp_path / "model"))
    ranker = load_ranker(tmp_path / "model")
    expected = their_scores(model)
    np.testing.assert_allclose(ranker.scores_of(ranker.read(PAIRS)), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ranker.rank_scores(QUERY, DOCUMENTS), expected, rtol=1e-5, atol=1e-6)
    apart = ranker.embeddings_of([QUERY], queries=True) @ ranker.embeddings_of(DOCUMENTS).T
    np.testing.assert_allclose(apart[0], expected, rtol=1e-5, atol=1e-6)
    ranking = Reranker(ranker).rank(QUERY, DOCUMENTS, explain=1, method="saliency")
    words = ranking.documents[0].attribution.query.words
    assert [word.text for word in words] == QUERY.split()  # the prompt's are nobody's


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"include_prompt": False, "prompts": PROMPTS}, "pools texts without their prompt"),
        ({"similarity_fn_name": "dot"}, "compares embeddings by dot, backlight by their cosine"),
    ],
)
def test_our_own_engine_refuses_what_it_would_score_otherwise(settings, message, tmp_path):
    bi_encoder(tmp_path / "parts", **settings).save(str(tmp_path / "model"))
    with pytest.raises(InputError, match=f'{message}.*then load it with engine="torch"'):
        load_ranker(tmp_path / "model")


def test_the_class_is_inferred_where_the_folder_does_not_name_it(tmp_path):
    assert sentence_class(tmp_path, {"Transformer": "", "SpladePooling": "1"}) == "SparseEncoder"
    assert sentence_class(tmp_path, {"Transformer": "", "LogitScore": "1"}) == "CrossEncoder"
    assert sentence_class(tmp_path, {"Transformer": "", "Pooling": "1"}) == "SentenceTransformer"
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"model_type": "MultiVectorEncoder"}))
    assert sentence_class(tmp_path, {"Transformer": "", "Dense": "1"}) == "MultiVectorEncoder"


def test_what_cannot_be_loaded_is_said(tmp_path, monkeypatch):
    folder = write_bert(tmp_path / "bert")
    with pytest.raises(InputError, match="read_typos must be left out"):
        Reranker.from_pretrained(folder, engine="torch", read_typos=True)
    with pytest.raises(InputError, match="instruction must be left out"):
        Reranker.from_pretrained(folder, engine="torch", instruction="find food")
    with monkeypatch.context() as patched:
        patched.delattr(sentence_transformers, "SentenceTransformer")
        with pytest.raises(InputError, match="is a SentenceTransformer, which needs sentence-transformers 6 or later"):
            Reranker.from_pretrained(folder, engine="torch")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(InputError, match=r"is a SentenceTransformer of sentence-transformers, which is missing"):
            Reranker.from_pretrained(folder, engine="torch")


def test_a_language_model_without_a_known_prompt_is_sent_to_memory(tmp_path):
    folder = tmp_path / "gpt"
    config = transformers.GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    write_tokenizer(folder)
    with pytest.raises(InputError, match=r"is a language model and needs prompt=.* arguments of Reranker\.of"):
        Reranker.from_pretrained(folder, engine="torch")


def test_a_masked_language_model_without_modules_is_named(tmp_path):
    folder = write_bert(tmp_path)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"architectures": ["BertForMaskedLM"]}))
    with pytest.warns(UserWarning, match=r"predicts masked words and has no modules\.json"):
        Reranker.from_pretrained(folder)


def test_a_command_turns_our_own_warnings_into_lines_and_leaves_the_others(tmp_path, monkeypatch, capsys):
    folder = write_bert(tmp_path)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"architectures": ["BertForMaskedLM"]}))

    def loaded(*given, **options):
        warnings.warn("of another library", FutureWarning, stacklevel=1)
        return load_ranker(*given, **options)

    monkeypatch.setattr(explain_reranker, "load_ranker", loaded)
    parser = Parser()
    add_model(parser)
    with pytest.warns(FutureWarning, match="of another library") as warned:
        reranker_of(parser.parse_args(["--model", str(folder)]))
    assert len(warned) == 1
    assert capsys.readouterr().err.startswith("backlight: the model in")
