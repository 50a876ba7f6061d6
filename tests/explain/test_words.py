"""Words of a text and their tokens are those of the definition, character by character."""

from hypothesis import given
from hypothesis import strategies as st

from backlight.explain import words
from backlight.explain.words import tokens_by_word, word_spans

TEXTS = st.text(st.sampled_from("ab1Z9 \t\n.,:;'’-‐·_&@!?()…é東京ﾊ\u0301\u200b$٣\u2028\xa0"), max_size=40)
OFFSETS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12)


def spans_by_character(text):
    """Return words by asking between any two characters of the whole text whether they are joined."""
    spans, start = [], None
    for place, character in enumerate(text):
        if character.isspace():
            start = None
        elif start is None or not words._joined(text, place):
            spans.append([place, place + 1])
            start = place
        else:
            spans[-1][1] = place + 1
    return [tuple(span) for span in spans]


@given(TEXTS)
def test_words_are_those_between_characters_that_nothing_joins(text):
    for part in (text, text * 2, "plain words " + text):
        assert word_spans(part) == spans_by_character(part)


def test_runs_of_any_length_are_split_alike():
    for run in ("don't.", "a-b" * 40 + "(see", "東京" * 50, "...!" * 30):
        assert word_spans(f" {run} {run}") == spans_by_character(f" {run} {run}")


@given(TEXTS, OFFSETS)
def test_a_token_belongs_to_the_words_that_its_characters_lie_in(text, places):
    offsets = sorted((start, start + length) for start, length in places)
    spans = word_spans(text)
    covering = [{n for n, (a, b) in enumerate(spans) if set(range(a, b)) & set(range(*offset))} for offset in offsets]
    found = tokens_by_word(text, offsets)
    assert [token for word in found for token in word.tokens] == [n for n, words in enumerate(covering) if words]
    for word in found:
        covered = set().union(*(covering[token] for token in word.tokens))
        assert (word.start, word.end) == (spans[min(covered)][0], spans[max(covered)][1])
