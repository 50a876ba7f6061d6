"""Reads query and document inside the prompt that a language model expects of a reranker's pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, Pair
from backlight.models.tokens import Tokenizer, TokenRow, Windows, checked_stride, count_of_windows


@dataclass(frozen=True)
class Prompt:
    """What stands around query and document.

    The opening, the middle with both texts, and the closing are each cut into tokens apart, so that nothing in a text
    can change the tokens of opening and closing.
    """

    opening: str
    before_query: str
    between: str
    closing: str


SIDES = ("query",), ("document", "passage", "corpus")  # names of a bi-encoder's prompts, in the order of preference


def prompt_of_side(prompts: Mapping[str, str], default: str | None, names: Sequence[str]) -> str:
    """Return the prompt before texts of one side, as sentence-transformers' `encode_query` and `encode_document` do.

    Args:
        prompts: the model's prompts by name.
        default: the name of the one for texts that have none of their own.
        names: what a prompt for this side may be called (`SIDES`).
    """
    found = [name for name in (*names, default) if name in prompts]
    return prompts[found[0]] if found else ""


INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"


def qwen3_prompt(instruction: str = INSTRUCTION) -> Prompt:
    """Return the prompt that Qwen3's rerankers were trained with.

    Args:
        instruction: what a document must do to be relevant.
    """
    return Prompt(
        opening="<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
        'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
        before_query=f"<Instruct>: {instruction}\n<Query>: ",
        between="\n<Document>: ",
        closing="<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    )


@dataclass(frozen=True, eq=False)
class _PromptPart:
    """Tokens of a prompt."""

    ids: np.ndarray  # (tokens,)
    sides: np.ndarray
    offsets: np.ndarray  # (tokens, 2), in the text of the token's side

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: slice) -> "_PromptPart":
        return _PromptPart(self.ids[place], self.sides[place], self.offsets[place])


class PromptReader:
    """Reads a pair as one sequence, a prompt with query and document in it.

    A token that holds a character of a text is that text's; all others are ADDED. A pair that is too long loses the end
    of its document.

    Args:
        tokenizer: the model's.
        prompt: what stands around the texts.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Prompt | None = None):
        self.tokenizer, self.max_length = tokenizer, tokenizer.max_length
        self._prompt = prompt or qwen3_prompt()
        fixed = [tokenizer.row(part) for part in (self._prompt.opening, self._prompt.closing)]
        self._opening, self._closing = (_prompt_part(part, {}) for part in fixed)
        if self.max_length <= len(self._opening) + len(self._closing):
            around = len(self._opening) + len(self._closing)
            raise InputError(f"max_length must leave room beside the prompt's {around} tokens, got {self.max_length}")

    def answers(self, yes: str = "yes", no: str = "no") -> tuple[int, int]:
        """Return the ids of the tokens that the model answers with.

        Raises:
            InputError: an answer is more than one token of this tokenizer.
        """
        found = [encoding.ids for encoding in self.tokenizer.encoded([yes, no])]
        for answer, ids in zip((yes, no), found):
            if len(ids) != 1:
                raise InputError(
                    f"the answer {answer} must be one token, got {len(ids)}: it is no reranker's tokenizer"
                )
        return found[0][0], found[1][0]

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return each pair of texts as the model reads it.

        Raises:
            InputError: a query leaves no room for its document.
        """
        found = []
        for (query, document), (query_part, document_part) in zip(pairs, self._middles(pairs)):
            room = self._room(query_part, document_part)
            found.append(self._pair(query, document, query_part, document_part[:room], len(document_part)))
        return found

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document; one, if all of it fits (see `Scorer.windows`)."""
        ((query_part, document_part),) = self._middles([(query, document)])
        room = self._room(query_part, document_part)
        stride, total = checked_stride(stride, room), len(document_part)

        def window(number: int) -> Pair:
            part = document_part[number * stride : number * stride + room]
            return self._pair(query, document, query_part, part, total)

        return Windows(window, count_of_windows(total, room, stride))

    def _middles(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[_PromptPart, _PromptPart]]:
        """Return for each pair the tokens of the prompt's middle before the document's first, and the others."""
        before, between = self._prompt.before_query, self._prompt.between
        found = []
        for query, document in pairs:
            middle = self.tokenizer.row(before + query + between + document)
            start = len(before) + len(query) + len(between)
            prompt = _prompt_part(middle, {QUERY: (len(before), len(query)), DOCUMENT: (start, len(document))})
            documents = np.flatnonzero(prompt.sides == DOCUMENT)
            first = int(documents[0]) if len(documents) else len(prompt)
            found.append((prompt[:first], prompt[first:]))
        return found

    def _room(self, query_part: _PromptPart, document_part: _PromptPart) -> int:
        room = self.max_length - len(self._opening) - len(query_part) - len(self._closing)
        if (room < 1 and len(document_part)) or room < 0:
            raise InputError(
                f"the query must leave room for the document among {self.max_length} tokens, got "
                f"{int((query_part.sides == QUERY).sum())} tokens beside the prompt's"
            )
        return room

    def _pair(self, query: str, document: str, query_part: _PromptPart, document_part: _PromptPart, total: int) -> Pair:
        parts = self._opening, query_part, document_part, self._closing
        ids = np.concatenate([part.ids for part in parts]).astype(np.int64)
        return Pair(
            query=query,
            document=document,
            ids=ids,
            type_ids=np.zeros_like(ids),
            positions=np.arange(len(ids)),
            sides=np.concatenate([part.sides for part in parts]),
            offsets=np.concatenate([part.offsets for part in parts]).astype(np.int64),
            pieces=self.tokenizer.spelled(ids),
            lengths=(len(ids),),
            left_out=(0, total - len(document_part)),
        )


def _prompt_part(row: TokenRow, texts: dict[int, tuple[int, int]]) -> _PromptPart:
    """Return tokens with the side of each.

    Args:
        texts: by side, where its text begins in what was cut into tokens, and how long it is.
    """
    sides = np.full(len(row), ADDED, np.int8)
    offsets = np.zeros_like(row.offsets)
    for side, (start, length) in texts.items():
        inside = np.clip(row.offsets - start, 0, length)
        own = inside[:, 0] < inside[:, 1]
        sides[own], offsets[own] = side, inside[own]
    return _PromptPart(row.ids, sides, offsets)
