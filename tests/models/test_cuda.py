"""Models whose encoder is put on a GPU score and explain as on the processor, with a stand-in for the GPU.

See tests/support/cuda_on_host.py: the kernels' own source, compiled by g++. None of this has run on a GPU.
"""

import dataclasses
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from beside_transformers import random_model
from cuda_on_host import COMPILER, host_device
from tiny_bert import SIZES, cross_encoder, real_ranker, relative_error, write_bert, write_tokenizer

from backlight.adapters.cupy_device import cupy_device
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.cuda.scorers import on_cuda
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ is there")
PAIRS = [
    ("how do plants make food", "green plants make food from sunlight, water and air."),
    ("a leaf", "unlike cells"),
    ("green " * 6, "food from the leaf " * 12),
    ("a leaf", "water"),
]
QUERY, DOCUMENTS = PAIRS[0][0], [document for _, document in PAIRS]
FAMILIES = ("Bert", "Roberta", "XLMRoberta", "Camembert", "Electra", "DistilBert")
DISTILBERTS = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim"}  # fmt: skip


def classifier(folder, family: str, **settings):
    """Write a classifier of a family, as transformers builds it."""
    sizes = SIZES | {"num_labels": 1, "pad_token_id": 0, "max_position_embeddings": 66}
    sizes |= ({"embedding_size": SIZES["hidden_size"]} if family == "Electra" else {}) | settings
    if family == "DistilBert":
        sizes = {DISTILBERTS.get(name, name): value for name, value in sizes.items()}
    config = getattr(transformers, f"{family}Config")(**sizes)
    random_model(getattr(transformers, f"{family}ForSequenceClassification"), config).save_pretrained(folder)
    write_tokenizer(folder)
    return load_ranker(folder)


def bi_encoder(folder, pooling: str):
    (write_bert(folder) / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    return load_ranker(folder)


POOLINGS = ("mean", "cls", "lasttoken", "mean_sqrt_len_tokens")
MODELS = {family: lambda folder, family=family: classifier(folder, family) for family in FAMILIES}
MODELS |= {f"bi-encoder, {one}": lambda folder, one=one: bi_encoder(folder, one) for one in POOLINGS}
MODELS |= {
    f"Bert, {one}": lambda folder, one=one: classifier(folder, "Bert", hidden_act=one) for one in ("gelu_new", "relu")
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_and_gradients_are_those_of_the_processor(tmp_path, name):
    here = MODELS[name](tmp_path)
    there = on_cuda(here, host_device())
    batch = PairBatch.of(here.read(PAIRS))
    for score in (
        lambda one: one.score(batch),
        lambda one: one.scores_of(batch.pairs),
        lambda one: one.rank_scores(QUERY, DOCUMENTS),
    ):
        np.testing.assert_allclose(score(there), score(here), rtol=1e-5, atol=1e-5)
    for words in (None, here.embed(batch) * np.float32(0.5)):
        (scores, gradients), (expected, slopes) = there.gradients(batch, words), here.gradients(batch, words)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
        for own, exact in zip(batch.by_pair(gradients), batch.by_pair(slopes)):
            assert np.linalg.norm(own - exact) < 1e-5 * np.linalg.norm(exact)
        if words is not None:
            np.testing.assert_allclose(there.score(batch, words), expected, rtol=1e-5, atol=1e-5)


def test_the_real_minilm_is_explained_as_on_the_processor():
    here = real_ranker()
    there = on_cuda(here, host_device())
    batch = PairBatch.of(here.read([("what moves the sea", "The tides follow the Moon.")]))
    assert relative_error(there.gradients(batch)[1], here.gradients(batch)[1]) < 1e-5


def test_a_ranking_is_explained_and_says_where_and_how_near():
    here = cross_encoder()
    rankers = here, on_cuda(here, host_device())
    ours, theirs = (Reranker(one).rank(QUERY, DOCUMENTS, explain=4, method="saliency") for one in rankers)
    for one, other in zip(ours.documents, theirs.documents, strict=True):
        assert one.index == other.index
        values = [[word.value for word in each.attribution.document.words] for each in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-4)
    ran = theirs.documents[0].attribution.execution
    assert (ran.engine, ran.device, ran.dtype, ran.compared) == ("backlight's kernels", "cuda:0", "float32", 1)
    assert ran.deviation < 1e-5
    assert ours.documents[0].attribution.execution is None


@pytest.mark.parametrize(("dtype", "least", "most"), [("tf32", 1e-6, 5e-3), ("bfloat16", 1e-4, 5e-2)])
def test_products_in_fewer_digits_are_as_near_as_their_digits(dtype, least, most):
    there = on_cuda(cross_encoder(), host_device(dtype))
    batch = PairBatch.of(there.read(PAIRS))
    scores, gradients = there.deviation(batch)
    assert scores < most
    assert least < gradients < most
    assert there.execution(batch.pairs, gradients=True).dtype == dtype


def test_what_looks_into_layers_runs_on_the_processor():
    here = cross_encoder()
    there = on_cuda(here, host_device())
    batch = PairBatch.of(here.read(PAIRS[:2]))
    np.testing.assert_array_equal(there.inside(batch).states[1], here.inside(batch).states[1])
    np.testing.assert_array_equal(there.mask_gradients(batch).gradients, here.mask_gradients(batch).gradients)
    assert Reranker(there).explain(*PAIRS[0]).method == "leave-one-out"


def test_where_memory_runs_out_a_batch_goes_on_in_halves():
    here = cross_encoder()
    pairs = here.read([*PAIRS, *PAIRS])
    whole = 4 * 72 * sum(map(len, pairs))  # bytes of queries, keys and values
    there, batch = on_cuda(here, host_device(limit=whole // 2)), PairBatch.of(pairs)
    for found, expected in zip(there.gradients(batch), here.gradients(batch)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    there.cuda.device.xp.limit.limit = 1000
    with pytest.raises(InputError, match=r"cuda:0 must have memory for one pair of \d+ tokens, and has not"):
        there.score(batch)


def test_a_gpu_that_computes_something_else_is_not_used(monkeypatch):
    device = host_device()
    ordinary = device.product
    monkeypatch.setattr(device, "product", lambda rows, weight: ordinary(rows, weight) * np.float32(1.001))
    with pytest.raises(InputError, match=r"cuda:0 must give the scores and gradients of the processor, and is off by"):
        on_cuda(cross_encoder(), device)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden_act": "silu"}, "on cuda hidden_act must be one of gelu, "),
        ({"num_attention_heads": 2}, "on cuda a head must have 8, 16, 24 … 128 numbers, got 12"),
    ],
)
def test_models_without_kernels_are_refused(tmp_path, settings, said):
    with pytest.raises(InputError, match=said):
        on_cuda(classifier(tmp_path, "Bert", **settings), host_device())


def test_models_of_another_shape_are_refused(tmp_path):
    with pytest.raises(InputError, match="on cuda texts cannot be pooled by maxima"):
        on_cuda(bi_encoder(tmp_path / "max", "max"), host_device())
    with pytest.raises(InputError, match=r"runs cross- and bi-encoders of BERT's shape .*, and builtin is none"):
        on_cuda(Reranker.from_pretrained().scorer, host_device())
    with pytest.raises(InputError, match="on cuda embeddings must have the size of hidden states, 24, got 16"):
        on_cuda(classifier(tmp_path / "electra", "Electra", embedding_size=16), host_device())


def test_tokens_beyond_the_tables_are_refused_before_they_are_looked_up():
    there = on_cuda(cross_encoder(), host_device())
    (pair,) = there.read(PAIRS[:1])
    ends = ("ids", 999, "ids must be below"), ("positions", 32, "at most 32"), ("type_ids", 2, "type_ids must be")
    for name, value, said in ends:
        wrong = dataclasses.replace(pair, **{name: np.full(len(pair), value)})
        with pytest.raises(InputError, match=said):
            there.score(PairBatch.of([wrong]))


def test_devices_and_dtypes_that_are_none_are_named(capsys):
    for device, dtype, said in (
        ("mps", "float32", "device must be cpu, cuda or cuda:N with backlight's engine, got mps"),
        (
            "cuda",
            "float16",
            "dtype must be one of float32, tf32, bfloat16 on cuda with backlight's engine, got",
        ),
    ):
        with pytest.raises(InputError, match=said):
            cupy_device(device, dtype)


def test_without_a_gpu_one_line_says_what_is_missing(capsys):
    assert main(["rank", QUERY, *DOCUMENTS, "--device", "cuda"]) == 2
    error = capsys.readouterr().err
    assert "device cuda" in error
    assert len(error.strip().splitlines()) == 1


def test_the_benchmark_says_that_no_gpu_is_there(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert importlib.import_module("gpu").main() == 2
    assert capsys.readouterr().err == "no GPU is there, so nothing was measured\n"
