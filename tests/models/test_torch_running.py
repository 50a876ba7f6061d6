"""Models on PyTorch run end to end, compiled and in half precision as they run otherwise, and results say how."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import torch._inductor.config
import transformers
from models_in_memory import (
    DOCUMENTS,
    PAIRS,
    QUERY,
    bert_tokenizer,
    bi_encoder,
    classifier,
    fingerprint,
    late_interaction,
    sparse_encoder,
)
from tiny_bert import SIZES, write_cross_encoder, write_tokenizer

from backlight.adapters.torch_library import sent
from backlight.adapters.torch_models.scorer import END_TO_END, PADDED
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.pairs import PairBatch

GROWN = {"strategy": "min", "length": 12, "attend": False, "token": None}


@pytest.fixture(autouse=True)
def one_thread():
    """Sequences run end to end on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def taken(model, **options) -> Reranker:
    return Reranker.of(model, tokenizer=bert_tokenizer(), **options)


def half(dtype=torch.bfloat16):
    return classifier().to(dtype)


def of_folder(family: str, folder) -> Reranker:
    """Return a classifier of a family that transformers builds from its config."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(
        **SIZES | {"num_labels": 1, "pad_token_id": 0, "max_position_embeddings": 66}
    )
    getattr(transformers, f"{family}ForSequenceClassification")(config).save_pretrained(folder)
    write_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 32}))
    return Reranker.from_pretrained(folder, engine="torch")


SHAPES = {
    "Bert": lambda folder: of_folder("Bert", folder),
    "Roberta": lambda folder: of_folder("Roberta", folder),
    "XLMRoberta": lambda folder: of_folder("XLMRoberta", folder),
    "Electra": lambda folder: of_folder("Electra", folder),
    "SentenceTransformer": lambda folder: Reranker.of(bi_encoder(folder)),
    "SparseEncoder": lambda folder: Reranker.of(sparse_encoder(folder)),
    "MultiVectorEncoder": lambda folder: Reranker.of(late_interaction(folder)),
}
OTHERS = {
    "queries filled up": lambda folder: Reranker.of(late_interaction(folder, expansion=GROWN)),
    "attention step by step": lambda folder: taken(classifier()),
    "DistilBERT": lambda folder: of_folder("DistilBert", folder),
}


def execution(reranker: Reranker):
    return reranker.scorer.execution([], gradients=False)


@pytest.mark.parametrize("name", SHAPES)
def test_sequences_end_to_end_give_what_padded_ones_give(tmp_path, name):
    scorer = SHAPES[name](tmp_path).scorer
    batch = PairBatch.of(scorer.read([*PAIRS, ("a leaf", "light " * 20)]))
    assert execution(Reranker(scorer)).sequences == END_TO_END
    scores, gradients = scorer.gradients(batch)
    np.testing.assert_array_equal(scorer.score(batch).shape, scores.shape)
    scorer._end_to_end = False
    padded_scores, padded = scorer.gradients(batch)
    np.testing.assert_allclose(scores, padded_scores, rtol=1e-5, atol=1e-6)
    assert np.abs(gradients - padded).max() < 1e-5 * max(1.0, np.abs(padded).max())


def test_sequences_are_padded_on_several_threads():
    torch.set_num_threads(2)
    model = classifier()
    model.set_attn_implementation("sdpa")
    assert execution(taken(model)).sequences == PADDED


@pytest.mark.parametrize("name", OTHERS)
def test_sequences_are_padded_where_attention_cannot_go_sequence_by_sequence(tmp_path, name):
    assert execution(OTHERS[name](tmp_path)).sequences == PADDED


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("weights", [True, False])
def test_gradients_in_half_precision_are_compared_with_float32(dtype, weights):
    model = half(getattr(torch, dtype)) if weights else classifier()
    reranker = taken(model, **({} if weights else {"dtype": dtype}))
    before = fingerprint(model)
    made = reranker.rank(QUERY, DOCUMENTS, explain=3, method="saliency").documents[0].attribution
    assert fingerprint(model) == before
    middle = sorted(reranker.scorer.read(PAIRS), key=len)[1]
    batch = PairBatch.of([middle])
    start = reranker.scorer.embed(batch)
    found = reranker.scorer.gradients(batch, start)[1]
    exact = taken(model.float()).scorer.gradients(batch, start)[1]
    assert (made.execution.dtype, made.execution.compared) == (dtype, 1)
    expected = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert made.execution.deviation == pytest.approx(expected, rel=1e-3)
    assert 1e-5 < expected < 0.1


def test_a_quarter_of_the_pairs_are_compared_and_four_at_most():
    scorer = taken(half()).scorer
    pairs = scorer.read(PAIRS * 8)
    compared = [scorer.execution(pairs[:count], gradients=True).compared for count in (1, 4, 5, 24)]
    assert compared == [1, 1, 2, 4]


@pytest.mark.parametrize(("method", "compared"), [("saliency", 1), ("leave-one-out", 1), ("occlusion", None)])
def test_only_what_is_made_of_gradients_is_compared(method, compared):
    options = {"words": 1, "budget": 0.001} if method == "leave-one-out" else {}  # the others are estimated
    assert taken(half()).explain(*PAIRS[0], method=method, **options).execution.compared == compared


def test_nothing_is_compared_in_float32():
    assert taken(classifier()).explain(*PAIRS[0], method="saliency").execution.deviation is None


class Island(HTMLParser):
    """The data of a page."""

    data = ""

    def handle_data(self, data):
        self.data += data


def test_the_deviation_is_stated_in_terminal_json_page_and_notebook(tmp_path, capsys):
    model = str(write_cross_encoder(tmp_path / "model"))
    arguments = ["--model", model, "--engine", "torch", "--dtype", "bfloat16", "--method", "saliency"]
    assert main(["explain", QUERY, *DOCUMENTS, *arguments, "--html", str(tmp_path / "page.html")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("precision")]
    assert main(["explain", QUERY, *DOCUMENTS, *arguments, "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)["documents"][0]["attribution"]["execution"]
    said = f"bfloat16: gradients within {100 * ran['deviation']:.2g} % of float32 on 1 pair"
    assert line.split(maxsplit=1)[1].strip() == said
    page = Island()
    page.feed((tmp_path / "page.html").read_text())
    assert said in page.data
    assert "PyTorch on cpu in bfloat16; sequences end to end, without padding" in page.data
    reranker = Reranker.from_pretrained(model, engine="torch", dtype="bfloat16")
    assert said in reranker.rank(QUERY, DOCUMENTS, explain=3, method="saliency")._repr_html_()


def test_without_memory_for_float32_that_is_said(monkeypatch):
    model = half()
    reranker, ordinary, shape = taken(model), torch.Tensor.float, model.get_input_embeddings().weight.shape

    def full(tensor):
        if tensor.shape == shape:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return ordinary(tensor)

    monkeypatch.setattr(torch.Tensor, "float", full)
    made = reranker.explain(*PAIRS[0], method="saliency")
    assert (made.execution.compared, made.execution.deviation) == (0, None)
    assert "bfloat16: gradients not compared with float32, for which there was no memory" in made._repr_html_()


@pytest.mark.filterwarnings("ignore:`torch.jit.script", "ignore:The .grad attribute of a Tensor")  # PyTorch's own
def test_compiled_layers_give_what_the_model_gives_and_share_their_code():
    model = classifier()
    plain, reranker = taken(model).scorer, taken(model, compile=True)
    before = fingerprint(model)
    torch._dynamo.utils.counters.clear()
    batch = PairBatch.of(plain.read([*PAIRS, ("a leaf", "light " * 20)]))
    scores, gradients = reranker.scorer.gradients(batch)
    assert execution(reranker).compiled
    assert execution(reranker).sequences == PADDED
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # without gradients and with them
    expected = plain.gradients(batch)
    np.testing.assert_allclose(scores, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradients, expected[1], rtol=1e-4, atol=1e-6)
    assert reranker.scorer.inside(batch, slopes=True).state_slopes[0].shape == gradients.shape
    assert fingerprint(model) == before


@pytest.mark.filterwarnings("ignore:`torch.jit.script")
def test_a_model_that_cannot_be_compiled_runs_with_a_warning(monkeypatch):
    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", ("no-such-compiler",))
    torch._dynamo.reset()
    model = classifier(hidden_size=36)
    reranker = taken(model, compile=True)
    with pytest.warns(UserWarning, match=r"torch\.compile cannot be used for BertForSequenceClassification, which"):
        scores = reranker.predict(PAIRS, activation="identity")
    np.testing.assert_allclose(scores, taken(model).predict(PAIRS, activation="identity"), rtol=1e-5)
    assert not execution(reranker).compiled


def test_compile_is_refused_where_nothing_can_be_compiled(tmp_path, capsys):
    with pytest.raises(InputError, match="compile must be left out: a function of pairs has no use for it"):
        Reranker.of(lambda pairs: [0.0] * len(pairs), compile=True)
    layer = torch.nn.Embedding(30, 4)
    with pytest.raises(InputError, match=r"compile must be left out: a function is a function; give torch.compile"):
        taken(lambda embeddings, mask: embeddings.sum((1, 2)), embeddings=layer, compile=True)
    assert main(["explain", QUERY, DOCUMENTS[0], "--compile"]) == 2
    assert "compile must be left out: only engine torch supports it" in capsys.readouterr().err


class Recorded:
    """A tensor of which only the calls are known."""

    def __init__(self):
        self.calls = []

    def pin_memory(self):
        self.calls.append("pin_memory")
        return self

    def to(self, device, **options):
        self.calls.append((device, options))
        return self


def test_tensors_go_to_a_gpu_from_pinned_memory_without_waiting():
    assert sent(Recorded(), "cuda:1").calls == ["pin_memory", ("cuda:1", {"non_blocking": True})]
    assert sent(Recorded(), "cpu").calls == [("cpu", {})]
    assert sent(Recorded(), "mps").calls == [("mps", {})]
