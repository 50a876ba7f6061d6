"""Explanations by leaving out: what the score loses without a word, or without a sentence.

Source: Zeiler, Fergus, Visualizing and Understanding Convolutional Networks, 2013, arXiv:1311.2901; Li, Monroe,
Jurafsky, Understanding Neural Networks through Representation Erasure, 2016, arXiv:1612.08220.
"""

from collections.abc import Callable, Sequence

from backlight.explain.attribution import Attribution
from backlight.explain.checks import check_values
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.parts import attribute_parts, sentence_parts, word_parts
from backlight.models.pairs import Pair
from backlight.models.scoring import PairScorer


def occlusion(
    ranker: PairScorer, pairs: Sequence[Pair], *, by: str = "mask", progress: Callable[[int], None] = lambda done: None
) -> list[Attribution]:
    """Return what each score loses when a word of query or document is left out: score − score without the word.

    Tokens that belong to no text stay.

    Args:
        pairs: as `ranker.read` gives them.
        by: how words are left out, a key of `WAYS` (see NOTE [Ways to leave words out]).
        progress: called with the number of pairs newly explained.

    Returns:
        One explanation a pair, in units of the score; a pass for each word and one for the full pair.

    Raises:
        InputError: `by` is not a way, or the model does not know it.
        RuntimeError: no word changes the score, or a score is not finite.
    """
    return _explained(ranker, pairs, word_parts, by, progress, method="occlusion", meaning="score − score without it")


def occlusion_by_sentence(
    ranker, pairs: Sequence[Pair], *, by: str = "mask", progress: Callable[[int], None] = lambda done: None
) -> list[Attribution]:
    """Return what each score loses when a sentence is left out; each `Word` of the result is a sentence.

    Where a text is one sentence, its value is what the score loses without the text. Otherwise as `occlusion`;
    see NOTE [What a sentence is].
    """
    fields = {"method": "occlusion-sentence", "meaning": "score − score without the sentence"}
    return _explained(ranker, pairs, sentence_parts, by, progress, **fields)


def _explained(ranker, pairs: Sequence[Pair], parts_of: Callable, by: str, progress, **fields) -> list[Attribution]:
    """Return explanations whose values are what the score loses without each part."""
    remove = removal_called(by)
    parts = [parts_of(pair) for pair in pairs]
    removals = [[[], *([part] for part in own)] for own in parts]
    groups = (remove(ranker, pair, own) for pair, own in zip(pairs, removals))
    explained = []
    for pair, own, scores in zip(pairs, parts, score_groups(ranker, groups, progress), strict=True):
        values = scores[0] - scores[1:]
        check_values(values, pair.name, "what the score loses without a part")
        fields |= {"model": ranker.name, "signed": True, "baseline": f"the pair without it, by {by}"}
        fields |= {"score": float(scores[0]), "passes": len(scores), "settings": {"by": by}}
        explained.append(attribute_parts(pair, own, values, **fields))
    return explained
