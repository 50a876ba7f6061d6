"""32 documents ranked for a query and explained by saliency, from texts to a value for each token, with MiniLM-L6.

    python benchmarks/explained_ranking.py [--quick] [--json FILE] [--only "rank and explain 32"]

The model is a cross-encoder in a folder: MiniLM-L6's weights, and a classifier of one label drawn at random. Documents
are sentences of words from its vocabulary; a pair has 20 to 256 tokens. Ours is what users call,
`Reranker.rank(query, documents, explain=32, method="saliency", check=False)`: scores, the order, words, tokens and
truncation of each text. *With its check* each explanation is held against deletions too, which is the default. In the
last row the strongest five words of each document and three of the query are measured (`leave-one-out`). *In memory* is
transformers' model itself, taken by `Reranker.of`; in one row it only scores. Rivals: see NOTE [PyTorch's arrangements]
in pairs.py. They cut the texts with the tokenizers library and give a score a pair and a value a token, which are
compared with ours before anything is timed (not in the last row, whose values are others). Tokenising counts on both
sides; loading the model on neither.
"""

import atexit
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pairs as work
from measure import OURS, Bar, Case
from quiet import library
from suite import main

TITLE = "MiniLM-L6 cross-encoder, texts to ranking with saliency, float32"
COUNT, QUERY_WORDS, SENTENCE = 32, 8, 14
BUCKET = "torch, buckets of 4"
CHECKED = "backlight, with its check"
BUCKET_BAR, PADDED_BAR, ENGINE_BAR, MEASURED_BAR = 0.45, 0.25, 1.05, 2.2
SCORE_BAR = 1.05
MEASURED = 8  # words of a pair: five of the document, three of the query


@cache
def folder() -> Path:
    """Return the folder of the cross-encoder, which is written once and removed at the end."""
    torch, transformers = library("torch"), library("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    made = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    source = library("backlight.models.checkpoint").find_model(work.MODEL)
    torch.manual_seed(0)
    transformers.BertForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(made)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, made)
    return made


@cache
def vocabulary() -> list[str]:
    """Return the words that are one token each."""
    found = json.loads((folder() / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(word for word in found if word.isascii() and word.isalpha() and len(word) > 2)


def texts(count: int, seed: int = 0) -> tuple[str, list[str]]:
    """Return a query and documents; lengths of the pairs are uniform from 20 to 256 tokens."""
    rng = np.random.default_rng(seed)
    query, *documents = (
        _text(rng, tokens)
        for tokens in [QUERY_WORDS, *(rng.integers(work.SHORTEST, work.LONGEST + 1, count) - QUERY_WORDS - 3)]
    )
    return query, documents


def _text(rng: np.random.Generator, tokens: int) -> str:
    """Return sentences of so many words and full stops together."""
    words = rng.choice(vocabulary(), tokens).tolist()
    words[SENTENCE::SENTENCE] = ["."] * len(words[SENTENCE::SENTENCE])
    return " ".join(words).replace(" .", ".")


def ours(
    query: str, documents: Sequence[str], engine: str = "backlight", check: bool = False
) -> Callable[[], list[np.ndarray]]:
    """Return a function that ranks and explains as users do; it gives scores and the tokens' values."""
    reranker = library("backlight.explain.reranker").Reranker.from_pretrained(folder(), engine=engine)
    return _ranked(reranker, query, documents, check)


def _ranked(reranker, query: str, documents: Sequence[str], check: bool = False) -> Callable[[], list[np.ndarray]]:
    def once():
        ranking = reranker.rank(query, documents, explain=len(documents), method="saliency", check=check)
        found = sorted(ranking.documents, key=lambda ranked: ranked.index)
        sides = [side for one in found for side in (one.attribution.query, one.attribution.document)]
        values = [token.value for side in sides for token in side.tokens]
        return [np.array([one.score for one in found]), np.array(values)]

    return once


def ours_measured(query: str, documents: Sequence[str], check: bool = False) -> Callable[[], list[np.ndarray]]:
    """Return a function that ranks and explains by deletion of each pair's strongest words; it gives scores."""
    reranker = library("backlight.explain.reranker").Reranker.from_pretrained(folder())

    def once():
        options = {"method": "leave-one-out", "words": MEASURED, "check": check}
        ranking = reranker.rank(query, documents, explain=len(documents), **options)
        return [np.array([one.score for one in sorted(ranking.documents, key=lambda ranked: ranked.index)])]

    return once


def in_memory(query: str, documents: Sequence[str]) -> Callable[[], list[np.ndarray]]:
    """Return a function that ranks and explains by the rivals' own model; it gives scores and the tokens' values."""
    return _ranked(_reranker_of_their_model(), query, documents)


def scored_in_memory(query: str, documents: Sequence[str]) -> Callable[[], list[np.ndarray]]:
    """Return a function that scores by the rivals' own model."""
    reranker, pairs = _reranker_of_their_model(), [(query, document) for document in documents]
    return lambda: [reranker.predict(pairs, activation="identity")]


def _reranker_of_their_model():
    tokenizer = library("transformers").AutoTokenizer.from_pretrained(folder(), model_max_length=work.LONGEST * 2)
    return library("backlight.explain.reranker").Reranker.of(their_model()[0], tokenizer=tokenizer)


@cache
def their_model():
    """Return transformers' model, frozen, with sdpa, and the library's tokenizer."""
    model = library("transformers").BertForSequenceClassification.from_pretrained(folder(), attn_implementation="sdpa")
    tokenizer = library("tokenizers").Tokenizer.from_file(str(folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(work.LONGEST * 2)
    return model.eval().requires_grad_(False), tokenizer


def theirs(query: str, documents: Sequence[str], size: int) -> Callable[[], list[np.ndarray]]:
    """Return a function that explains with PyTorch, so many neighbours in length at a time; 0 for all at once."""
    model, tokenizer = their_model()

    def once():
        read = tokenizer.encode_batch([(query, document) for document in documents])
        lengths = list(map(len, read))
        groups = work.in_groups(len(read), lengths, size) if size else [range(len(read))]
        scores, values = np.empty(len(read)), [None] * len(read)
        for group in groups:
            found, importances = _importances(model, [read[place] for place in group])
            for place, score, row in zip(group, found, importances):
                scores[place] = score
                values[place] = row[: lengths[place]][np.array(read[place].special_tokens_mask) == 0]
        return [scores, np.concatenate(values)]

    return once


def their_scores(query: str, documents: Sequence[str], size: int) -> Callable[[], list[np.ndarray]]:
    """Return a function that scores with PyTorch, so many neighbours in length at a time; 0 for all at once."""
    torch = library("torch")
    model, tokenizer = their_model()

    def once():
        read = tokenizer.encode_batch([(query, document) for document in documents])
        groups = work.in_groups(len(read), list(map(len, read)), size) if size else [range(len(read))]
        scores = np.empty(len(read))
        for group in groups:
            ids, types, mask = _rectangle([read[place] for place in group])
            with torch.no_grad():
                scores[group] = model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[:, 0].numpy()
        return [scores]

    return once


def _importances(model, read: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of encodings and Σ|∂score/∂embedding| of each token; (pairs,), (pairs, longest)."""
    torch = library("torch")
    ids, types, mask = _rectangle(read)
    leaf = model.get_input_embeddings()(ids).detach().requires_grad_()
    scores = model(inputs_embeds=leaf, token_type_ids=types, attention_mask=mask).logits[:, 0]
    (gradients,) = torch.autograd.grad(scores.sum(), [leaf])
    return scores.detach().numpy(), gradients.abs().sum(-1).numpy()


def _rectangle(read: Sequence) -> tuple:
    """Return ids, segments and mask of encodings padded to the longest; no mask where nothing is padded."""
    torch, width = library("torch"), max(map(len, read))

    def padded(rows):
        return torch.tensor([row + [0] * (width - len(row)) for row in rows])

    mask = None if all(len(one) == width for one in read) else padded([one.attention_mask for one in read])
    return padded([one.ids for one in read]), padded([one.type_ids for one in read]), mask


def cases(quick: bool = False) -> list[Case]:
    """Return backlight's engine, PyTorch's under backlight's explanations, and measured words."""
    count = 3 if quick else COUNT
    name = f"rank and explain {count}"

    def made(make: Callable, **options) -> Callable:
        return lambda: make(*texts(count), **options)

    rivals = {work.PADDED: made(theirs, size=0), BUCKET: made(theirs, size=4)}
    plain = {OURS: made(ours), CHECKED: made(ours, check=True)}
    of_torch = {OURS: made(ours, engine="torch")}
    memory = {OURS: made(in_memory)}
    scored = {OURS: made(scored_in_memory), work.PADDED: made(their_scores, size=0), BUCKET: made(their_scores, size=4)}
    measured = {OURS: made(ours_measured), CHECKED: made(ours_measured, check=True)}
    often = {"rounds": 9, "seconds": 90.0}
    return [
        Case(name, plain | rivals, bars=(Bar(BUCKET_BAR, (BUCKET,)), Bar(PADDED_BAR)), **often),
        Case(f"{name}, torch's engine", of_torch | rivals, bars=(Bar(ENGINE_BAR, (BUCKET,)),), **often),
        Case(f"{name}, in memory", memory | rivals, bars=(Bar(ENGINE_BAR, (BUCKET,)),), **often),
        Case(f"score {count}, in memory", scored, bars=(Bar(SCORE_BAR, (BUCKET,)),), **often),
        Case(
            f"{name}, {MEASURED} words measured",
            measured | rivals,
            bars=(Bar(MEASURED_BAR, (BUCKET,)),),
            tolerance=None,
            **often,
        ),
    ]


if __name__ == "__main__":
    sys.exit(main("explained_ranking", TITLE, cases))
