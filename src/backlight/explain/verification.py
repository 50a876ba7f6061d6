"""Hold explanations against the score: delete the words that they show, and score again.

NOTE [The check]
For any method on any model, the strongest words of an explanation (5 of the document, 3 of the query) are deleted from
the text one at a time, the 5 strongest of the document together, as many drawn at random (3 times, or once where many
documents are explained, with a fixed seed), and all of the document's words; each such pair is scored. A document of
fewer than twice as many words has no random draw: that would be nearly the same words. An explanation *holds* where at
least `SIGNS` of the words that change the score by 2 % of the range or more have the sign that is shown, and the 5
strongest together move the score the way that is shown, and further than random words do (twice as far, for methods
without signs). Where it *fails*, what is shown must not be believed. Effects that a method measured itself
(`leave-one-out`) are not measured again. The range is that of the ranking's scores, or for one document what the score
loses without any of its words, whichever is larger.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backlight.errors import BacklightError
from backlight.explain.attribution import Attribution, Check, Word
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.parts import STRONGEST, Part
from backlight.explain.presentation.scales import FAILS, HOLDS, NO_EFFECT, SIGNS
from backlight.models.misspellings import as_read
from backlight.models.pairs import DOCUMENT, QUERY, Pair
from backlight.models.scorer import Scorer

DRAWS = 3  # sets of words drawn at random, of each of few documents
FEW = 4  # documents; of each of more, one set is drawn
TWICE = 2.0  # how much more than random words the strongest of a method without signs must do
LEAST = 1e-3  # of the score, or of 1: a smaller effect is none, whatever the range
THRESHOLD = 0.02  # of the range: a smaller effect has no sign worth counting
WAY = "drop"  # how words leave: see NOTE [Measured and estimated] in explain/methods/leave_one_out.py


@dataclass(frozen=True, eq=False)
class ExplainedDocument:
    """An explained document as the model read it: its pair, or the pairs of the windows whose mean is its score."""

    pairs: tuple[Pair, ...]
    attribution: Attribution


Named = tuple[int, Word]  # a word and whose it is: QUERY or DOCUMENT


def check_explanations(
    ranker: Scorer, explained: Sequence[ExplainedDocument], spread: float = 0.0
) -> list[Attribution]:
    """Return explanations with their `check`, and with the effects of the words that were deleted for it.

    Args:
        spread: the range of the scores of the ranking that they are from; 0 for a document alone.
    """
    plans = [_Plan(one, DRAWS if len(explained) <= FEW else 1) for one in explained]
    remove = removal_called(WAY)
    groups = (
        remove(
            ranker, pair, [[Part(side, word.start, word.end, ()) for side, word in words] for words in plan.removals]
        )
        for plan in plans
        for pair in plan.read.pairs
        if plan.removals
    )
    found = iter(score_groups(ranker, groups))
    empty = _scores_without_document(ranker, {_query_as_read(one) for one in explained})
    checked = []
    for plan in plans:
        score = plan.read.attribution.score
        scores = np.mean([next(found) for _ in plan.read.pairs], axis=0) if plan.removals else np.empty(0)
        nothing = empty[_query_as_read(plan.read)]
        checked.append(plan.checked(score - scores, None if nothing is None else score - nothing, spread))
    return checked


def _query_as_read(one: ExplainedDocument) -> str:
    """Return the query as the model reads it with this document; before an empty one it reads any as it is written."""
    return as_read(one.pairs[0].query, one.pairs[0].read_as)


def _scores_without_document(ranker: Scorer, queries: Collection[str]) -> dict[str, float | None]:
    """Return the score of each query with an empty document; None where the model scores no such pair."""
    found: dict[str, float | None] = {}
    for query in queries:
        try:
            found[query] = float(ranker.scores_of(ranker.read([(query, "")]))[0])
        except BacklightError:
            found[query] = None
    return found


class _Plan:
    """Which words of an explanation are deleted, and what their effects say of it."""

    def __init__(self, read: ExplainedDocument, draws: int):
        self.read = read
        made = read.attribution
        texts = {QUERY: made.query, DOCUMENT: made.document}
        self.strongest: list[Named] = [
            (side, word) for side, text in texts.items() for word in text.strongest(STRONGEST[side]) if word.value
        ]
        words = [word for word in made.document.words if not word.is_mark]
        self.top = self._top(made)
        draw = np.random.default_rng(0)
        self.random = [
            [words[place] for place in draw.choice(len(words), len(self.top), replace=False)]
            for _ in range(draws if 0 < 2 * len(self.top) <= len(words) else 0)
        ]
        self.single = [(side, word) for side, word in self.strongest if word.effect is None]
        sets = [self.top, *self.random] if self.top else []
        self.removals = [[one] for one in self.single] + [[(DOCUMENT, word) for word in own] for own in sets]

    @staticmethod
    def _top(made: Attribution) -> list[Word]:
        """Return the document's strongest words that push the score one way: the way that the strongest one pushes.

        Of a method without signs they are half of the document's words at most: it must be compared with random words.
        """
        strongest = [word for word in made.document.strongest() if word.value and not word.is_mark]
        if made.signed and strongest:
            strongest = [word for word in strongest if (word.value > 0) == (strongest[0].value > 0)]
        words = sum(not word.is_mark for word in made.document.words)
        return strongest[: STRONGEST[DOCUMENT] if made.signed else min(STRONGEST[DOCUMENT], max(1, words // 2))]

    def checked(self, effects: np.ndarray, total: float | None, spread: float) -> Attribution:
        """Return the explanation with its check.

        Args:
            effects: what the score loses by each of the removals, (removals,).
            total: what it loses without the document.
        """
        made = self.read.attribution
        count = len(self.single)
        measured = {(side, word.start): float(effect) for (side, word), effect in zip(self.single, effects[:count])}
        drop = float(effects[count]) if self.top else 0.0
        random = float(effects[count + 1 :].mean()) if self.random else 0.0
        threshold = max(THRESHOLD * max(spread, abs(total or 0.0), abs(drop)), LEAST * max(1.0, abs(made.score)))
        made = _with_effects(made, measured)
        texts = {QUERY: made.query, DOCUMENT: made.document}
        known = {(side, word.start): word for side, text in texts.items() for word in text.words}
        strongest = [known[side, word.start] for side, word in self.strongest]
        shown = [(word.value, word.effect) for word in strongest]
        counted = [(value, effect) for value, effect in shown if abs(effect) >= threshold]
        signs = sum(value * effect > 0 for value, effect in counted) if made.signed else None
        check = Check(
            by=WAY,
            words=len(shown),
            counted=len(counted),
            signs=signs,
            threshold=threshold,
            top=len(self.top),
            drop=drop,
            random=random,
            total=total,
            verdict=self._verdict(len(counted), signs, drop, random, threshold),
            passes=len(self.removals) * len(self.read.pairs) + 1,
        )
        return replace(made, check=check)

    def _verdict(self, counted: int, signs: int | None, drop: float, random: float, threshold: float) -> str:
        if not counted and abs(drop) <= threshold:
            return NO_EFFECT
        if signs is not None and counted and signs < SIGNS * counted:
            return FAILS
        if not self.top or (signs is None and not self.random):
            return HOLDS
        if signs is None:
            return HOLDS if abs(drop) > TWICE * abs(random) else FAILS
        shown = -1 if self.top[0].value < 0 else 1
        return HOLDS if shown * drop > abs(random) else FAILS  # random is 0 where none were drawn


def _with_effects(made: Attribution, measured: Mapping[tuple[int, int], float]) -> Attribution:
    """Return an explanation with effects, which take the place of values that were estimates of them."""
    texts = {}
    for side, text in ((QUERY, made.query), (DOCUMENT, made.document)):
        words = []
        for word in text.words:
            effect = measured.get((side, word.start))
            changed = {} if effect is None else {"effect": effect} | ({"value": effect} if made.estimate else {})
            words.append(replace(word, **changed) if changed else word)
        texts[side] = replace(text, words=tuple(words))
    settings = dict(made.settings)
    if made.estimate:
        settings["measured"] = settings.get("measured", 0) + len(measured)
    return replace(made, query=texts[QUERY], document=texts[DOCUMENT], settings=settings)
