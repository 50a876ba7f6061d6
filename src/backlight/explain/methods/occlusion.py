"""Occlusion: how much the score falls without a word, or without a sentence.

Source: Zeiler, Fergus, Visualizing and Understanding Convolutional Networks, 2013, arXiv:1311.2901; Li, Monroe,
Jurafsky, Understanding Neural Networks through Representation Erasure, 2016, arXiv:1612.08220.
"""

from collections.abc import Callable
from dataclasses import replace

from backlight.explain.attribution import Attribution, Recipe
from backlight.explain.checks import check_values
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.methods.by_batch import Pairs
from backlight.explain.parts import Part, attribute_parts, sentence_parts, word_parts
from backlight.models.pairs import Pair
from backlight.models.scorer import Progress, Scorer, no_progress


def occlusion(ranker: Scorer, pairs: Pairs, *, by: str = "mask", progress: Progress = no_progress) -> list[Attribution]:
    """Return the score lost when each word of query or document is removed: score − score without the word.

    Special tokens are kept. The cost is one pass for each word and one for the full pair.

    Args:
        by: how words are removed, a key of `WAYS` (see NOTE [Ways to leave words out]). Others as in NOTE [A method].

    Raises:
        InputError: `by` is not a key of `WAYS`, or the model does not support it.
        RuntimeError: no word changes the score, or a score is not finite.
    """
    return _explained(ranker, pairs, word_parts, by, progress, "occlusion", "score − score without it")


def occlusion_by_sentence(
    ranker: Scorer, pairs: Pairs, *, by: str = "mask", progress: Progress = no_progress
) -> list[Attribution]:
    """Return the score lost when each sentence is removed; each `Word` of the result is a sentence.

    If a text is one sentence, its value is the score lost without the text. Otherwise as `occlusion`;
    see NOTE [What a sentence is].
    """
    meaning = "score − score without the sentence"
    return _explained(ranker, pairs, sentence_parts, by, progress, "occlusion-sentence", meaning)


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    parts_of: Callable[[Pair], list[Part]],
    by: str,
    progress: Progress,
    method: str,
    meaning: str,
) -> list[Attribution]:
    """Return explanations whose values are what the score loses without each part."""
    remove = removal_called(by)
    recipe = Recipe(method, meaning, signed=True, baseline=f"the pair without it, by {by}", settings={"by": by})
    parts = [parts_of(pair) for pair in pairs]
    groups = (remove(ranker, pair, [[], *([part] for part in own)]) for pair, own in zip(pairs, parts))
    explained = []
    for pair, own, scores in zip(pairs, parts, score_groups(ranker, groups, progress), strict=True):
        values = scores[0] - scores[1:]
        check_values(values, pair.name, "what the score loses without a part")
        made = replace(recipe, passes=len(scores))
        explained.append(attribute_parts(pair, own, values, made, ranker.name, scores[0]))
    return explained
