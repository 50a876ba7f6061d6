"""How models in memory read pairs: by a copy of their own tokenizer, compared with their own preprocessing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from backlight.errors import InputError
from backlight.models.pairs import Pair, PairReader, SeparateReader
from backlight.models.prefixed_tokens import PrefixedTokenizer
from backlight.models.prompts import INSTRUCTION, Prompt, PromptReader, qwen3_prompt
from backlight.models.tokens import Tokenizer, TokenizerSettings

PROBE = ("How many people live in Berlin?", "Berlin has 3.8 million inhabitants, says the city's register.")
QUERY_MARK, DOCUMENT_MARK = "QUERYQUERY", "DOCUMENTDOCUMENT"  # stand for the texts of a chat template
FUNCTION_OF_PAIRS = "or give a function of pairs, Reranker.of(lambda pairs: …), whose explanations are measured"


def tokenizer_in_memory(tokenizer: Any, longest: int) -> Tokenizer:
    """Return a tokenizer over a copy of one of transformers or of the tokenizers library.

    Args:
        longest: how many tokens the model reads at most; fewer, if the tokenizer says so.

    Raises:
        InputError: it is a slow one, which does not say which characters a token stands for.
    """
    library = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(library, "to_str") or not hasattr(library, "encode_batch"):
        raise InputError(
            f"tokenizer must be a fast one, which says which characters each token stands for, got "
            f"{type(tokenizer).__name__}: load it by AutoTokenizer with a tokenizer.json, {FUNCTION_OF_PAIRS}"
        )
    settings = TokenizerSettings(
        model_max_length=getattr(tokenizer, "model_max_length", None),
        model_input_names=tuple(getattr(tokenizer, "model_input_names", ())),
        padding_side=getattr(tokenizer, "padding_side", "right"),
        pad_token=getattr(tokenizer, "pad_token", None),
        mask_token=getattr(tokenizer, "mask_token", None),
    )
    return Tokenizer.of(library, settings, int(min(longest, settings.model_max_length or longest)))


def separate_reader(tokenizer: Any, prompts: Sequence[str], longest: Sequence[int]) -> SeparateReader:
    """Return what reads query and document apart, each with its prompt and length."""
    read = [
        PrefixedTokenizer.with_prompt(tokenizer_in_memory(tokenizer, most), prompt)
        for prompt, most in zip(prompts, longest)
    ]
    return SeparateReader(read[1], query_tokenizer=read[0])


def prompt_of(template: str | None, instruction: str | None, tokenizer: Tokenizer, name: str) -> Prompt:
    """Return what stands around a pair for a language model.

    Args:
        template: a text with {query} and {document} in it; by default Qwen3's, for a tokenizer that has its tokens.

    Raises:
        InputError: the template lacks one of them, or there is none for this tokenizer.
    """
    if template is None:
        if not tokenizer.knows("<|im_start|>"):
            raise InputError(
                f"{name} is a language model and needs prompt=, a text with {{query}} and {{document}} in it, "
                "and answers=, the token whose logit is the score: they are arguments of Reranker.of"
            )
        return qwen3_prompt(instruction or INSTRUCTION)
    before, found, rest = template.replace("{instruction}", instruction or INSTRUCTION).partition("{query}")
    between, also, after = rest.partition("{document}")
    if not found or not also:
        raise InputError(f"prompt must hold {{query}} and after it {{document}}, got {template[:60]!r}")
    return Prompt(opening="", before_query=before, between=between, closing=after)


def ended(prompt: Prompt, tokenizer: Any) -> Prompt:
    """Return a prompt with the token at its end by which the tokenizer ends texts, if it ends them by one."""
    if not callable(tokenizer):  # one of the tokenizers library does not say how texts end
        return prompt
    ends = {tokenizer.eos_token_id: tokenizer.eos_token, tokenizer.sep_token_id: tokenizer.sep_token}
    end = ends.get(tokenizer("a")["input_ids"][-1])
    return prompt if end is None or prompt.closing.endswith(end) else replace(prompt, closing=prompt.closing + end)


def prompt_in_chat(preprocess: Callable, tokenizer: Any) -> Prompt | None:
    """Return what a chat template puts around a pair; None if the texts are not to be found in what it gives."""
    ids = preprocess([(QUERY_MARK, DOCUMENT_MARK)])["input_ids"][0]
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    before, query, rest = text.partition(QUERY_MARK)
    between, document, after = rest.partition(DOCUMENT_MARK)
    return Prompt(opening="", before_query=before, between=between, closing=after) if query and document else None


def reads_alike(reader: PairReader | PromptReader, features: Mapping[str, Any]) -> bool:
    """Return whether a reader gives the ids of the probe that a model's preprocessing gave."""
    return reader([PROBE])[0].ids.tolist() == features["input_ids"][0].tolist()


def check_separate(reader: SeparateReader, features: Sequence[Mapping[str, Any]], name: str) -> None:
    """Raise unless a reader gives the ids of the probe's texts that a model's preprocessing gave.

    Args:
        features: of the query, which may be longer, filled up to a length, and of the document.
    """
    (pair,) = reader([PROBE])
    for own, found in zip(_texts_of(pair), features):
        if found["input_ids"][0].tolist()[: len(own)] != own:
            raise InputError(
                f"{name} reads texts in a way that backlight does not know: its preprocessing gives other tokens than "
                f"its tokenizer; give captum's kind of function with embeddings=, {FUNCTION_OF_PAIRS}"
            )


def _texts_of(pair: Pair) -> Iterator[list[int]]:
    yield pair.ids[: pair.lengths[0]].tolist()
    yield pair.ids[pair.lengths[0] :].tolist()


@contextmanager
def tokenizer_restored(tokenizer: Any) -> Iterator[None]:
    """Give a tokenizer its truncation and padding back, which its calls set."""
    library = tokenizer.backend_tokenizer
    truncation, padding = library.truncation, library.padding
    try:
        yield
    finally:
        library.no_truncation()
        library.no_padding()
        if truncation is not None:
            library.enable_truncation(**truncation)
        if padding is not None:
            library.enable_padding(**padding)
