"""Models that cannot be run or explained as they are: one clear line says why, and what to do; a batch goes on."""

import json

import numpy as np
import pytest
import torch
import transformers
from beside_transformers import random_model
from models_in_memory import DOCUMENTS, PAIRS, QUERY, bert_config, bert_tokenizer, bi_encoder, classifier, cross_encoder
from tiny_bert import SIZES, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import GraphError, InputError
from backlight.explain.batch import Settings, run_batch
from backlight.explain.reranker import Reranker
from backlight.models.pairs import PairBatch

LAYER = torch.nn.Embedding(100, 8)


def function_of(score, **options) -> Reranker:
    """Return a reranker by a function from embeddings and mask."""
    return Reranker.of(score, tokenizer=bert_tokenizer(), embeddings=LAYER, **options)


def mean_of(inputs_embeds, attention_mask):
    return (inputs_embeds.tanh() * attention_mask[..., None]).sum((1, 2))


def test_weights_on_the_meta_device_are_named():
    with torch.device("meta"):
        model = transformers.BertForSequenceClassification(bert_config())
    with pytest.raises(InputError, match=r"the weights of BertFor.* must be in memory, and \d+ of \d+ are on the meta"):
        Reranker.of(model, tokenizer=bert_tokenizer())


def test_weights_in_eight_bits_are_named():
    model = classifier()
    layer = model.bert.encoder.layer[0].output.dense
    layer.weight = torch.nn.Parameter(layer.weight.to(torch.int8), requires_grad=False)
    with pytest.raises(InputError, match=r"must be float32, bfloat16 or float16, got a model in 8 or 4 bits"):
        Reranker.of(model, tokenizer=bert_tokenizer())


def test_a_tokenizer_without_offsets_is_named():
    class SlowTokenizer:
        model_max_length = 64

    with pytest.raises(InputError, match=r"tokenizer must be a fast one, .* got SlowTokenizer: .*function of pairs"):
        Reranker.of(classifier(), tokenizer=SlowTokenizer())


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_no_score(side):
    config = transformers.GPT2Config(
        vocab_size=SIZES["vocab_size"], n_embd=24, n_layer=2, n_head=3, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        num_labels=1,
    )  # fmt: skip
    model = random_model(transformers.GPT2ForSequenceClassification, config)
    tokenizer = bert_tokenizer(padding_side=side, model_input_names=["input_ids", "attention_mask"])
    reranker = Reranker.of(model, tokenizer=tokenizer)
    scorer = reranker.scorer
    batch = PairBatch.of(scorer.read(PAIRS))
    with torch.no_grad():
        expected = [model(torch.from_numpy(pair.ids)[None]).logits.item() for pair in batch.pairs]
    np.testing.assert_allclose(scorer.score(batch), expected, atol=1e-5)
    np.testing.assert_allclose(scorer.gradients(batch)[0], expected, atol=1e-5)


def test_a_score_that_is_not_differentiable_is_explained_by_measuring():
    reranker = function_of(lambda inputs_embeds, attention_mask: mean_of(inputs_embeds, attention_mask).detach())
    with pytest.raises(GraphError, match=r"is not differentiable, so choose a method that leaves words out: leave-one"):
        reranker.explain(*PAIRS[0], method="saliency")
    found = reranker.explain(*PAIRS[0], words=2)
    word = found.document.strongest(1)[0]
    assert word.effect == pytest.approx(
        found.score - reranker.predict((QUERY, DOCUMENTS[0].replace(word.text, "", 1))), abs=1e-4
    )


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda score: (score,),
        lambda score: [score[:, None]],
        lambda score: {"logits": score},
        lambda score: {"scores": score},
    ],
)
def test_scores_are_found_in_tuples_and_dicts(wrapped):
    plain = function_of(mean_of).predict(PAIRS)
    found = function_of(lambda inputs_embeds, attention_mask: wrapped(mean_of(inputs_embeds, attention_mask)))
    np.testing.assert_array_equal(found.predict(PAIRS), plain)


@pytest.mark.parametrize(
    "wrapped, error",
    [
        (lambda score: ((score, score), score, score), r"must return a tensor of scores, .* got tuple of 3: wrap it"),
        (lambda score: {"a": {"b": score}}, r"must return a tensor of scores, .* got dict of 1: wrap it"),
        (lambda score: score.sum(), r"must return a score for each pair, .* got \(\) for \d pairs"),
        (lambda score: score[:, None].expand(-1, 3), r"returns 3 labels: say which is the score, label=0 to 2"),
        (lambda score: [float(one) for one in score], r"must return a tensor of scores"),
    ],
)
def test_nested_outputs_and_wrong_shapes_are_named(wrapped, error):
    reranker = function_of(lambda inputs_embeds, attention_mask: wrapped(mean_of(inputs_embeds, attention_mask)))
    with pytest.raises(InputError, match=error):
        reranker.predict(PAIRS)


def test_a_classifier_that_returns_tuples_is_read():
    model = classifier(return_dict=False)
    plain = Reranker.of(classifier(), tokenizer=bert_tokenizer()).predict(PAIRS)
    np.testing.assert_array_equal(Reranker.of(model, tokenizer=bert_tokenizer()).predict(PAIRS), plain)


def test_dropout_in_a_function_is_found():
    reranker = function_of(
        lambda inputs_embeds, attention_mask: mean_of(torch.nn.functional.dropout(inputs_embeds), attention_mask)
    )
    with pytest.raises(InputError, match=r"must give one score to one pair, and gives .* model\.eval\(\)"):
        reranker.predict(PAIRS)


class Memory:
    """A function whose device holds so many cells of a rectangle."""

    def __init__(self, cells: int):
        self.cells, self.sizes = cells, []

    def __call__(self, inputs_embeds, attention_mask):
        if attention_mask.numel() > self.cells:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.sizes.append(attention_mask.numel())
        return mean_of(inputs_embeds, attention_mask)


def test_out_of_memory_halves_the_budget_and_goes_on():
    plain, small = function_of(mean_of), Memory(64)
    reranker = function_of(small)
    pairs = [(QUERY, document) for document in DOCUMENTS * 5]
    np.testing.assert_allclose(reranker.predict(pairs), plain.predict(pairs), rtol=1e-6)
    assert max(small.sizes) <= 64
    batch = PairBatch.of(reranker.scorer.read(pairs))
    for found, expected in zip(reranker.scorer.gradients(batch), plain.scorer.gradients(batch)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    small.sizes.clear()
    reranker.predict(pairs)
    assert reranker.scorer._padding.cells <= 64, "the budget that fitted is kept"


def test_a_pair_that_does_not_fit_alone_is_an_error_and_a_batch_goes_on(tmp_path):
    reranker = function_of(Memory(40))
    with pytest.raises(InputError, match=r"cpu must have memory for one pair of 48 tokens, and has not \(CUDA out of"):
        reranker.predict((QUERY, "plants make food from sunlight " * 8))
    records = [{"query": QUERY, "document": one} for one in ("a leaf", "plants make food from sunlight " * 8, "water")]
    run_batch(records, tmp_path, reranker, Settings(method="saliency"))
    rows = [json.loads(line) for line in (tmp_path / "parts/part-00000.jsonl").read_text().splitlines()]
    bad = [json.loads(line) for line in (tmp_path / "bad_rows.jsonl").read_text().splitlines()]
    assert len(rows) == 2 and len(bad) == 1 and "must have memory for one pair" in json.dumps(bad)


@pytest.mark.parametrize(
    "take, error",
    [
        (lambda: Reranker.of(classifier()), r"tokenizer must be given with BertForSequenceClassification"),
        (lambda: Reranker.of(object()), r"object is no model of sentence-transformers or transformers"),
        (lambda: Reranker.of(torch.nn.Linear(2, 1)), r"Linear is no model of .* with tokenizer= and embeddings="),
        (
            lambda: function_of(mean_of, name="x", prompt="{query}"),
            r"prompt must be left out: mean_of has no use",
        ),
        (lambda: Reranker.of(mean_of, tokenizer=bert_tokenizer()), r"embeddings must be the layer that gives mean_of"),
        (lambda: function_of(mean_of, max_length=0), r"max_length must be 1 or more, got 0"),
        (
            lambda: function_of(mean_of, dtype="int8"),
            r"dtype must be one of auto, float32, .* got int8",
        ),
        (lambda: function_of(mean_of, device="tpu"), r"device must be one of cpu, cuda, mps, or cuda:N, got tpu"),
    ],
)
def test_what_does_not_fit_is_named(take, error):
    with pytest.raises(InputError, match=error):
        take()


def test_a_model_without_a_head_is_named():
    model = random_model(transformers.BertModel, bert_config())
    with pytest.raises(InputError, match=r"BertModel has no head that scores a pair: .* SentenceTransformer"):
        Reranker.of(model, tokenizer=bert_tokenizer())


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_device_that_is_not_there_is_named(tmp_path):
    for take in (
        lambda: Reranker.of(classifier(), tokenizer=bert_tokenizer(), device="cuda"),
        lambda: Reranker.from_pretrained(write_cross_encoder(tmp_path), engine="torch", device="cuda:1"),
    ):
        with pytest.raises(InputError, match=r"device cuda is not there: .*; use device=cpu"):
            take()


def test_devices_and_dtypes_belong_to_pytorchs_engine(tmp_path, capsys):
    folder = str(write_cross_encoder(tmp_path))
    assert main(["rank", "leaf", "food", "--model", folder, "--dtype", "bfloat16"]) == 2
    assert "dtype must be left out: only engine torch supports it, add --engine torch" in capsys.readouterr().err
    assert main(["rank", "leaf", "food", "--model", folder, "--engine", "torch", "--device", "mps"]) == 2
    assert "device mps is not there" in capsys.readouterr().err
    assert main(["rank", "leaf", "food", "--model", folder, "--engine", "torch", "--dtype", "bfloat16", "--json"]) == 0
    half = json.loads(capsys.readouterr().out)["results"][0]["logit"]
    assert main(["rank", "leaf", "food", "--model", folder, "--engine", "torch", "--device", "cpu", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)["results"][0]["logit"]
    assert half == pytest.approx(whole, abs=0.06) and half != whole


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_explained_near_to_single(tmp_path, dtype):
    whole = cross_encoder(tmp_path)
    expected = Reranker.of(whole).explain(*PAIRS[0], method="saliency", check=False)
    cast = classifier().to(getattr(torch, dtype))
    for reranker in (Reranker.of(cast, tokenizer=bert_tokenizer()), Reranker.of(whole, dtype=dtype)):
        found = reranker.rank(QUERY, DOCUMENTS, explain=3, method="saliency", check=False)
        one = next(one.attribution for one in found.documents if one.index == 0)
        assert one.score == pytest.approx(expected.score, abs=0.05)
        values = [[word.value for word in made.document.words] for made in (one, expected)]
        assert np.corrcoef(*values)[0, 1] > 0.98
    assert {weight.dtype for weight in whole.parameters()} == {torch.float32}


@pytest.mark.parametrize("found", [lambda pairs: [1.0], lambda pairs: None, lambda pairs: ["good"] * len(pairs)])
def test_a_function_of_pairs_returns_a_number_for_each(found):
    with pytest.raises(InputError, match=r"a function must return a score for each"):
        Reranker.of(found).predict(PAIRS)


def overlap(pairs):
    return np.array([len(set(q.split()) & set(d.replace(".", "").split())) for q, d in pairs])


def test_a_function_of_pairs_is_measured():
    reranker = Reranker.of(overlap)
    assert reranker.name == "overlap"
    np.testing.assert_array_equal(reranker.predict(PAIRS), overlap(PAIRS))
    for method in ("leave-one-out", "occlusion", "shapley"):
        found = reranker.explain("plants make food", "food for plants .", method=method)
        share = 0.5 if method == "shapley" else 1.0  # of the query's word and the document's
        values = {word.text: word.value for word in found.document.words}
        assert values == pytest.approx({"food": share, "for": 0, "plants": share, ".": 0}, abs=1e-6)
        assert found.check is not None
    ranking = reranker.rank(QUERY, DOCUMENTS, explain=1)
    assert ranking.documents[0].index == 0
    assert reranker.matrix("plants make", "plants grow").values == ((1.0, 0.0), (0.0, 0.0))
    for method in ("saliency", "integrated-gradients", "attention-rollout"):
        with pytest.raises(InputError, match=r"overlap is a function of pairs, .* choose leave-one-out, occlusion"):
            reranker.explain(*PAIRS[0], method=method)


def test_a_router_is_refused_with_what_to_do(tmp_path):
    class Router(torch.nn.Module):
        pass

    model = bi_encoder(tmp_path)
    model[0].__class__ = type("Router", (type(model[0]),), {})
    with pytest.raises(InputError, match=r"reads queries and documents by two models \(a Router\): give a function"):
        Reranker.of(model)
