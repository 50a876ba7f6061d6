"""How scores and their changes are written: as probabilities where the model has a sigmoid, else as the raw score.

NOTE [Probability and logit]
Where the model's activation is a sigmoid, a score and what it changes to are written as probabilities, and the logits
are named as such beside them (in brackets, or in a tip). Values of words are differences of the raw score, the logit:
a difference of probabilities depends on where it begins. Two probabilities that are the same in three digits are
written as logits. Where there is no sigmoid, the raw score is written.

NOTE [Digits]
All output rounds alike. Scores and probabilities have three digits after the point; raw ones more where the two that
a sentence compares would look the same. Changes of the score (values of words, effects, what a full shade is) have two,
and more where the largest of those side by side would have fewer than two figures (`digits_for` in report/text.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backlight.explain.presentation.scales import ACTIVATED, PROBABILITY, sigmoid
from backlight.report.text import digits_for, number

LOGIT, SCORE = "logit", "score"
DIGITS = 3  # of scores and probabilities (see NOTE [Digits])


@dataclass(frozen=True)
class WrittenScores:
    """Scores of one document, written alike.

    Args:
        quantity: what they are: "probability", "logit" or "score".
        texts: each of them.
        logits: the same as logits, where `texts` are probabilities; else None.
    """

    quantity: str
    texts: tuple[str, ...]
    logits: tuple[str, ...] | None = None


def write_scores(scores: Sequence[float], activation: str | None) -> WrittenScores:
    """Return raw scores as they are shown (see NOTE [Digits]): the first two differ, if they do.

    Args:
        scores: raw scores: before, after, and others to compare with.
        activation: what `activation_of` returns for the ranking.

    >>> write_scores([2.6, -0.4], "probability").texts, write_scores([2.6, -0.4], "probability").logits
    (('0.931', '0.401'), ('2.600', '−0.400'))
    >>> write_scores([12.0, 11.5], "probability").quantity, write_scores([0.62, 0.41], None).texts
    ('logit', ('0.620', '0.410'))
    """
    effect = abs(scores[0] - scores[1]) if len(scores) > 1 else 1.0
    digits = max(DIGITS, digits_for([effect]))
    raw = tuple(number(score, f"z.{digits}f") for score in scores)
    if activation != PROBABILITY:
        return WrittenScores(SCORE, raw)
    texts = tuple(write_probability(sigmoid(score)) for score in scores)
    if len(texts) == 1 or texts[0] != texts[1] or not effect:
        return WrittenScores(PROBABILITY, texts, raw)
    return WrittenScores(LOGIT, raw)


def write_probability(value: float, digits: int = DIGITS) -> str:
    """Return a probability; one that would round to 0 or 1 as what it is below or above.

    >>> write_probability(0.9534), write_probability(0.99991), write_probability(0.004, 2)
    ('0.953', '>0.999', '<0.01')
    """
    least = 10.0**-digits
    if value < least / 2:
        return f"<{least:.{digits}f}"
    if value > 1 - least / 2:
        return f">{1 - least:.{digits}f}"
    return f"{value:.{digits}f}"


def score_parts(score: float, activated: float | None, activation: str | None) -> tuple[str, str]:
    """Return the score that is shown large, and what stands beside it, labelled; empty where there is no more.

    >>> score_parts(3.004, 0.953, "probability"), score_parts(0.62, 0.62, None)
    (('0.953', 'logit 3.004'), ('0.620', ''))
    """
    raw = number(score, "z.3f")
    if activation is None or activated is None:
        return raw, ""
    if activation == ACTIVATED:
        return raw, f"after the activation {number(activated, 'z.3f')}"
    return write_probability(activated), f"{LOGIT} {raw}"


def score_text(score: float, activated: float | None, activation: str | None) -> str:
    """Return a score in one line: `0.953 (logit 3.004)`."""
    shown, beside = score_parts(score, activated, activation)
    return f"{shown} ({beside})" if beside else shown


def unit_of(activation: str | None) -> str:
    """Return what words' values are differences of."""
    return LOGIT if activation == PROBABILITY else SCORE


def score_line(score_name: str, activation: str | None, *, explained: bool = True) -> str:
    """Return what the scores of a ranking are, and if it is explained, in what the values of words are.

    >>> score_line("logit", "probability")
    "probability (sigmoid of the logit); words' values are changes of the logit"
    """
    if activation == PROBABILITY:
        values = "; words' values are changes of the logit" if explained else ""
        return f"probability (sigmoid of the {score_name}){values}"
    return f"{score_name}, and after the model's activation" if activation == ACTIVATED else score_name
