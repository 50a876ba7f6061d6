"""The result of an explanation's check as one line in plain words, the same in the terminal and on the page.

NOTE [The verdict line]
It says what was measured: the score with the strongest words and without them, and without as many drawn at random.
What was not measured is called that. Scores are written as probabilities where the model has a sigmoid (see NOTE
[Probability and logit]); that without random words is the probability of the mean logit of the draws.
"""

from collections.abc import Sequence
from typing import Protocol

from backlight.explain.presentation.scales import FAILS, NO_EFFECT, SIGNS, Explained
from backlight.explain.presentation.scores import WrittenScores, unit_of, write_scores
from backlight.explain.presentation.wording import count_of, figure

UNITS = {"word": "word", "span": "phrase", "sentence": "sentence"}  # of leave-one-out
FAITHFUL, UNFAITHFUL, WITHOUT_EFFECT, UNKNOWN = "Faithful", "Not faithful", "No word matters", "Not measured"
SINGLE = 0.15  # of the effect of all words: a word with a smaller effect does not carry the match
MEASURED = "Measured"  # where there are too few other words to compare the strongest with


class WindowOf(Protocol):
    """A `Window`."""

    effects_of: str


def verdict_line(
    made: Explained,
    activation: str | None = None,
    window: WindowOf | None = None,
    option: str = "--{name} {value}",
) -> str:
    """Return whether an explanation is faithful, and what was measured (see NOTE [The verdict line]).

    Args:
        activation: what `activation_of` returns for the ranking.
        window: the window that the effects may be of, where the document was read in several.
        option: how an option is written where this is read: `--{name} {value}`, or `{name}="{value}"` in Python.
    """
    check = made.check
    if check is None:
        known = f" ({measured_text(made)} one by one)" if _counts(made)[0] else ""
        return f"{UNKNOWN}: the effect of deleting the strongest words{known}"
    if check.verdict == NO_EFFECT:
        least, unit = figure(check.threshold), unit_of(activation)
        return f"{WITHOUT_EFFECT}: deleting {_measured_words(made)} changes the {unit} by less than {least}"
    if check.verdict == FAILS:
        found = f"{_failure(made, activation, window)}; {_instead(made, option)}"
        return f"{UNFAITHFUL}, do not believe these colours: {found}"
    return f"{FAITHFUL if _compared(made) else MEASURED}: {_together(made, activation, window)}"


def verdict_logits(made: Explained, activation: str | None) -> str | None:
    """Return the scores of the verdict line as logits; None where it has no probabilities."""
    written = None if made.check is None or not made.check.top else _scores(made, activation)
    if written is None or written.logits is None:
        return None
    before, after, *random = written.logits
    said = f"logit {before}, without these words {after}"
    return f"{said}, without as many at random {random[0]}" if random else said


def details_line(made: Explained, activation: str | None = None) -> str | None:
    """Return how much was measured, and how the score changes without all of the document's words.

    None where there was no check.
    """
    check = made.check
    if check is None:
        return None
    parts = [measured_text(made)]
    if "measured" not in made.settings and check.signs is not None and check.counted:
        parts.append(_as_shown(made, activation))
    if check.total:
        written = write_scores([made.score, made.score - check.total], activation)
        before, after = written.texts
        parts.append(f"deleting all its words takes the {written.quantity} from {before} to {after}")
        parts += _no_single_word(made, activation)
    return "; ".join(parts)


def _no_single_word(made: Explained, activation: str | None) -> list[str]:
    """Say that the words act together, if the best word alone adds little of what all of them add."""
    effects = [word.effect for word in made.document.words if word.effect is not None and not word.is_mark]
    total, alone = made.check.total, max(effects, default=None)
    if alone is None or len(effects) < 2 or total < made.check.threshold or alone > SINGLE * total:
        return []
    adds = f"adds only {figure(alone, beside=(total,))}" if alone > 0 else "adds nothing"
    return [
        f"no single word carries the match: together the words add {figure(total)} to the {unit_of(activation)}, and "
        f"the strongest measured one alone {adds}"
    ]


def unit_word(made: Explained) -> str:
    """Return what an explanation gives values to: word, phrase or sentence."""
    return UNITS.get(made.settings.get("unit"), "word")


def measured_text(made: Explained) -> str:
    """Return how many of the document's words were deleted one by one to measure what the score does without them."""
    known, every = _counts(made)
    unit = unit_word(made)
    if not known:
        return f"no {unit} measured"
    if known == every:
        all_words = {1: f"its {unit}", 2: f"both {unit}s"}.get(known, f"all {count_of(known, unit)}")
        return f"{all_words} measured"
    return f"{known} of its {count_of(every, unit)} measured"


def _counts(made: Explained) -> tuple[int, int]:
    """Return how many of the document's words were measured, and how many there are; punctuation does not count."""
    words = [word for word in made.document.words if not word.is_mark]
    return sum(word.effect is not None for word in words), len(words)


def _measured_words(made: Explained) -> str:
    known, every = _counts(made)
    unit = unit_word(made)
    if known == every:
        return f"any of its {count_of(every, unit)}" if every != 1 else f"its {unit}"
    return f"any of the {count_of(known, unit)} measured (of {every:,})"


def _failure(made: Explained, activation: str | None, window: WindowOf | None) -> str:
    check = made.check
    if check.signs is not None and check.counted and check.signs < SIGNS * check.counted:
        return f"only {_as_shown(made, activation)} when deleted one by one"
    return _together(made, activation, window)


def _as_shown(made: Explained, activation: str | None) -> str:
    """Return how many of the words that matter have the sign that is shown."""
    check = made.check
    moves = "moves" if check.counted == 1 else "move"
    return f"{check.signs} of {count_of(check.counted, unit_word(made))} {moves} the {unit_of(activation)} as shown"


def _instead(made: Explained, option: str) -> str:
    """Return what to use instead: another method, or for the one that measures larger units."""
    if made.method != "leave-one-out":
        return f"use {option.format(name='method', value='leave-one-out')}"
    if unit_word(made) == "sentence":
        return "its sentences act together"
    return f"its {unit_word(made)}s act together: try {option.format(name='unit', value='sentence')}"


def _together(made: Explained, activation: str | None, window: WindowOf | None) -> str:
    """Return what the score does without the strongest words together, and without random ones."""
    check = made.check
    strongest = next((word for word in made.document.strongest() if word.value and not word.is_mark), None)
    if not check.top or strongest is None:
        right = "" if check.signs is None else f"; of the query's, {_as_shown(made, activation)}"
        return f"no word of the document has a value{right}"
    written = _scores(made, activation)
    quantity = (
        written.quantity if window is None or window.effects_of != "window" else f"best window's {written.quantity}"
    )
    before, after, *random = written.texts
    unit = unit_word(made)
    words = unit if check.top == 1 else f"{check.top} {unit}s"
    if made.signed:
        which = f"the {words} shown to {'raise' if strongest.value > 0 else 'lower'} it most"
    else:
        which = f"its {f'strongest {unit}' if check.top == 1 else f'{check.top} strongest {unit}s'}"
    return f"without {which}, the {quantity} {_moved(before, after, check.drop)}{_random(check.top, unit, random)}"


def _moved(before: str, after: str, drop: float) -> str:
    if not drop:
        return f"stays at {before}"
    return f"{'falls' if drop > 0 else 'rises'} from {before} to {after}"


def _random(count: int, unit: str, random: Sequence[str]) -> str:
    if not random:
        return "; there are too few others to compare them with"
    return f"; without {count_of(count, f'random {unit}')} it is {random[0]}"


def _compared(made: Explained) -> bool:
    """Tell whether the strongest words were compared with random ones: NOTE [The check] in explain/verification.py."""
    return 0 < 2 * made.check.top <= _counts(made)[1]


def _scores(made: Explained, activation: str | None) -> WrittenScores:
    """Return the score, that without the strongest words, and that without random ones where any were drawn."""
    check = made.check
    random = [made.score - check.random] if _compared(made) else []
    return write_scores([made.score, made.score - check.drop, *random], activation)
