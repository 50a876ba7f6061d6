"""A tokenizer that puts a prompt before every text, as bi-encoders' queries and documents have: `query: `."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from backlight.models.tokens import PIECE, Encoding, Tokenizer, TokenRow, Tokens


class PrefixedTokenizer(Tokenizer):
    """Reads a prompt and a text as one text. The prompt's tokens count as special, and stand in every window.

    A token that holds characters of both is the text's.
    """

    @classmethod
    def with_prompt(cls, tokenizer: Tokenizer, prompt: str) -> "Tokenizer":
        """Return a tokenizer with a prompt; the same one, where the prompt is empty."""
        if not prompt:
            return tokenizer
        found = cls.__new__(cls)
        vars(found).update(copy.copy(vars(tokenizer)))
        found._prompt = prompt
        found._prompt_tokens = found._count_of_prompt(*tokenizer.encoded([prompt + "a"]))
        found._room -= found._prompt_tokens  # of a text, without its prompt
        return found

    def all_of(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text with the prompt before it."""
        short = iter(self.encoded([self._prompt + text for text in texts if len(text) <= PIECE]))
        return [self._cut(text, next(short)) if len(text) <= PIECE else self._first(text) for text in texts]

    def row(self, text: str) -> TokenRow:
        """Return the text's own tokens, cut as they are behind the prompt."""
        row = super().row(self._prompt + text)
        own = row.offsets[:, 1] > len(self._prompt)
        return TokenRow(text, row.ids[own], np.maximum(row.offsets[own] - len(self._prompt), 0))

    def one(self, row: TokenRow) -> Encoding:
        """Return the library's encoding of the prompt and one token of a row."""
        start, end = row.offsets[np.flatnonzero(row.offsets[:, 1] > row.offsets[:, 0])[0]].tolist()
        (encoding,) = self.encoded([self._prompt + row.text[start:end]])
        encoding.truncate(self._count_of_prompt(encoding) + 1)
        return encoding

    def _cut(self, text: str, encoding: Encoding) -> Tokens:
        room = self._room + self._prompt_tokens
        left_out = max(0, len(encoding) - room)
        encoding.truncate(room)
        return self._finished(text, encoding, left_out)

    def _finished(self, text: str, encoding: Encoding, left_out: int) -> Tokens:
        found = super()._finished(text, encoding, left_out)
        prompt = found.special | (found.offsets[:, 1] <= len(self._prompt))
        offsets = np.maximum(found.offsets - len(self._prompt), 0)
        return replace(found, offsets=np.where(prompt[:, None], 0, offsets), special=prompt)

    def _count_of_prompt(self, encoding: Encoding) -> int:
        """Return how many tokens of the encoding of prompt and text hold none of the text's characters."""
        return sum(end <= len(self._prompt) for _, end in encoding.offsets)
