"""From a model folder to a model that scores pairs: what its files say it is, and how it reads texts."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from backlight.errors import InputError, install_hint
from backlight.formats.strict_json import Bounds, read_json_file
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import Kind, check_header, checked_settings, object_in, read_settings, read_weights
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.encoder import EncoderConfig
from backlight.models.encoders.families import FUSED, Family, family_of
from backlight.models.encoders.two_streams import TwoStreamBert
from backlight.models.fused import FusedCrossEncoder
from backlight.models.pairs import PairReader, SpellingReader
from backlight.models.pooling import POOLINGS, READ_ALONE
from backlight.models.prefixed_tokens import PrefixedTokenizer
from backlight.models.prompts import INSTRUCTION, SIDES, Prompt, PromptReader, prompt_of_side
from backlight.models.scoring import ACTIVATIONS
from backlight.models.tokens import Tokenizer, tokenizer_settings


def load_ranker(
    folder: Path,
    name: str | None = None,
    *,
    label: int | str | None = None,
    instruction: str | None = None,
    read_typos: bool | None = None,
) -> BiEncoder | CrossEncoder:
    """Return the model in a folder: a cross-encoder, if its config.json names a classifier, else a bi-encoder.

    Args:
        folder: config.json, model.safetensors, tokenizer.json; where present, modules.json, 1_Pooling/config.json and
            sentence_bert_config.json say how texts are read and pooled.
        name: what to call it; by default as the folder.
        label: which logit of a classifier with several is the score.
        instruction: what makes a document relevant, for a model whose prompt says it; by default what its files say.
        read_typos: whether misspelt words of queries are read as others (see NOTE [Misspellings] in
            models/misspellings.py), of cross-encoders with a WordPiece vocabulary; by default what config.json says.

    Raises:
        InputError: a file is missing or damaged, or the model is of a kind that backlight does not know.
    """
    folder = Path(folder)
    settings = model_settings(folder)
    family = family_of(folder, settings)
    config = family.config.of(settings)
    check_header(folder, config, family.encoder.words)
    name = name or folder.resolve().name
    if family.has_head(settings) and "Pooling" not in _modules_of(folder):
        reader = reader_of(folder, family.prompt, tokenizer_of(folder, config.max_tokens), instruction, read_typos)
        return _cross_encoder(folder, name, family, config, settings, label, reader)
    if instruction is not None:
        raise InputError(f"instruction must be left out: the model in {folder} reads none")
    if read_typos:
        raise InputError(f"read_typos must be left out: the model in {folder} embeds a query without its document")
    modules, says = _modules_of(folder), _checked(SentenceSettings, folder / "config_sentence_transformers.json")
    pooling = read_settings(folder / modules.get("Pooling", "1_Pooling") / "config.json")
    _check_similarity(folder, says.similarity_fn_name or "cosine", modules)
    if any(one.endswith("ForMaskedLM") for one in settings.get("architectures") or ()) and not modules:
        warnings.warn(
            f"the model in {folder} predicts masked words and has no modules.json: the cosine of its mean states is "
            "taken as the score, for which it may not be trained; a SPLADE or ColBERT needs the files of "
            'sentence-transformers, and engine="torch"',
            stacklevel=3,
        )
    tokenizer = tokenizer_of(folder, config.max_tokens)
    query_tokenizer, document_tokenizer = (
        PrefixedTokenizer.with_prompt(tokenizer, prompt) for prompt in _prompts_of(folder, says, pooling)
    )
    return BiEncoder(
        name=name,
        encoder=family.encoder(config, read_weights(folder)),
        tokenizer=document_tokenizer,
        pooling=_pooling_of(folder, pooling),
        query_tokenizer=None if query_tokenizer is document_tokenizer else query_tokenizer,
    )


def _cross_encoder(
    folder: Path,
    name: str,
    family: Family,
    config: EncoderConfig,
    settings: dict,
    label: int | str | None,
    reader: PairReader | PromptReader,
) -> CrossEncoder:
    answers = (_answers_of(folder, reader),) if family.answers(settings) else ()
    labels = ["yes rather than no"] if answers else labels_of(settings)
    weights = read_weights(folder)
    head = family.head(config, weights, len(labels), *answers)  # first: it says which weights are missing
    chosen = chosen_label(label, labels, folder)
    kind = FusedCrossEncoder if family.encoder is TwoStreamBert else CrossEncoder
    return kind(
        name=name,
        encoder=family.encoder(config, weights),
        head=head,
        reader=reader,
        label=chosen,
        activation=activation_of(settings),
        score_name="logit" if len(labels) == 1 and not answers else f"logit of {labels[chosen]}",
    )


def reader_of(
    folder: Path,
    prompt: Callable[[str], Prompt] | None,
    tokenizer: Tokenizer,
    instruction: str | None,
    read_typos: bool | None = None,
) -> PairReader | PromptReader:
    """Return what reads pairs for the cross-encoder in a folder.

    Args:
        prompt: what stands around a pair, given an instruction; None for models that need none.
        instruction: what makes a document relevant; by default what the folder says.
        read_typos: whether misspelt words of queries are read as others; by default what the folder says.

    Raises:
        InputError: there is an instruction, and no prompt to put it in; or typos are to be read, and there is a prompt.
    """
    if read_typos is None:
        read_typos = reads_typos(folder)
    if prompt is None:
        if instruction is not None:
            raise InputError(f"instruction must be left out: the model in {folder} reads none")
        return SpellingReader(tokenizer) if read_typos else PairReader(tokenizer)
    if read_typos:
        raise InputError(f"read_typos must be left out: the model in {folder} reads a query within a prompt")
    says = _checked(SentenceSettings, folder / "config_sentence_transformers.json")
    said = says.prompts.get(says.default_prompt_name or "")
    return PromptReader(tokenizer, prompt(instruction or said or INSTRUCTION))


def _answers_of(folder: Path, reader: PromptReader) -> tuple[int, int]:
    """Return the ids of yes and no: those that sentence-transformers wrote, or the tokenizer's."""
    place = _modules_of(folder).get("LogitScore")
    if place is None:
        return reader.answers()
    says = read_settings(folder / place / "config.json")
    found = says.get("true_token_id"), says.get("false_token_id")
    if not all(isinstance(answer, int) for answer in found):
        raise InputError(f"{folder / place} must say the ids of two answers, got {found[0]} and {found[1]}")
    return found


def labels_of(settings: dict) -> list[str]:
    """Return the names of a classifier's labels."""
    named = object_in(settings, "id2label")
    try:
        return [str(named[key]) for key in sorted(named, key=int)] or [
            f"LABEL_{number}" for number in range(settings.get("num_labels") or 2)
        ]
    except ValueError as problem:
        raise InputError(f"id2label must name each label by its number, got {str(list(named))[:60]}") from problem


def chosen_label(label: int | str | None, labels: Sequence[str], where: Path | str) -> int:
    """Return which logit is the score.

    Args:
        label: its number or its name.
        where: what the model is called in errors: its folder.

    Raises:
        InputError: there are several and none is chosen, or none is this one; the error lists them.
    """
    if label is None and len(labels) > 1:
        raise InputError(
            f"the model in {where} has {len(labels)} labels, {', '.join(labels)}, where a reranker has one: say which "
            f"is the score, label=0 to {len(labels) - 1}"
        )
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    if isinstance(label, str) and label.isdecimal():
        label = int(label)
    if isinstance(label, str):
        raise InputError(f"label must be one of {', '.join(labels)}, or its number from 0, got {label}")
    if len(labels) == 1 and label not in (None, 0):
        raise InputError(f"label must be left out: the model in {where} has one score, label 0; got {label}")
    if not 0 <= (label or 0) < len(labels):
        raise InputError(f"label must be from 0 to {len(labels) - 1}, got {label}")
    return label or 0


def activation_of(settings: dict) -> str:
    """Return the model's activation of a logit, from the keys that sentence-transformers writes."""
    said = object_in(settings, "sentence_transformers").get("activation_fn")
    said = said or settings.get("sbert_ce_default_activation_function") or "Sigmoid"
    if not isinstance(said, str):
        raise InputError(f"activation_fn must be a text, got {str(said)[:60]!r}")
    name = said.split(".")[-1].lower()
    if name not in ACTIVATIONS:
        raise InputError(f"the model shows its score by {said}: backlight knows {', '.join(ACTIVATIONS)}")
    return name


def tokenizer_of(folder: Path, longest: int) -> Tokenizer:
    """Return the tokenizer of a folder, which cuts at `longest` tokens, or at fewer if one of the files says so."""
    reading = _checked(ReadingSettings, folder / "sentence_bert_config.json")
    limits = longest, reading.max_seq_length, tokenizer_settings(folder).model_max_length
    shortest = min(int(limit) for limit in limits if limit)
    return Tokenizer(folder, shortest, lower_case=reading.do_lower_case)


def _check_similarity(folder: Path, name: str, modules: Mapping[str, str]) -> None:
    """Raise unless a bi-encoder compares embeddings by their cosine, which a dot product of length 1 is, too."""
    if name != "cosine" and not (name == "dot" and "Normalize" in modules):
        raise InputError(f"the model in {folder} compares embeddings by {name}, backlight by their cosine; {HINT}")


def _prompts_of(folder: Path, says: "SentenceSettings", pooling: Mapping) -> tuple[str, ...]:
    """Return what a bi-encoder reads before each query, and before each document: "query: " and "passage: ".

    Raises:
        InputError: the states of its tokens are not pooled with the text's, which backlight does not do.
    """
    prompts = tuple(prompt_of_side(says.prompts, says.default_prompt_name, names) for names in SIDES)
    if any(prompts) and not pooling.get("include_prompt", True):
        raise InputError(f"the model in {folder} pools texts without their prompt, which backlight does not do; {HINT}")
    return prompts


def _pooling_of(folder: Path, says: Mapping) -> str:
    """Return how the model pools, by the settings that sentence-transformers writes: the mean where there are none."""
    modes = says.get("pooling_mode") or [
        _OLD_NAMES.get(key, key) for key in says if key.startswith("pooling_mode_") and says[key]
    ]
    modes = [modes] if isinstance(modes, str) else modes or ["mean"]
    known = [*POOLINGS, *READ_ALONE]
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in known:
        raise InputError(
            f"{folder} pools by {' and '.join(map(str, modes))[:80]}: backlight knows one of {', '.join(known)}"
        )
    return modes[0]


def listed_modules(folder: Path) -> dict[str, str]:
    """Return the modules that sentence-transformers would run one after another, each with its folder.

    Raises:
        InputError: modules.json does not list them.
    """
    file = folder / "modules.json"
    listed = read_json_file(file) if file.is_file() else []
    try:
        modules = {module["type"].split(".")[-1]: module["path"] for module in listed}
    except (AttributeError, KeyError, TypeError) as problem:
        raise InputError(f"{file} must list modules, each with a type and a path") from problem
    if not all(isinstance(path, str) and path in ("", Path(path).name) for path in modules.values()):
        raise InputError(f"{file} must name a folder of the model's for each module, got {list(modules.values())!r}")
    return modules


def _modules_of(folder: Path) -> dict[str, str]:
    """Return the modules of a model. Raises InputError: backlight's own engine does not know one of them."""
    modules = listed_modules(folder)
    unknown = set(modules) - {"Transformer", "Pooling", "Normalize", "LogitScore"}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InputError(f"{folder} adds the module {names}, which backlight does not know; {HINT}")
    return modules


def written_as(folder: Path) -> str:
    """Return the class of sentence-transformers that wrote a folder, "" where it does not say so."""
    return _checked(SentenceSettings, folder / "config_sentence_transformers.json").model_type


@dataclass(frozen=True)
class ModelSettings:
    """The settings of config.json, apart from the encoder's sizes, which its family checks."""

    model_type: str = ""
    architectures: tuple[str, ...] = ()
    id2label: dict[str, str | int | float] = field(default_factory=dict)
    num_labels: Annotated[int, Bounds(1, le=100_000, words="a whole number, 1 or more")] = 2
    pad_token_id: int | None = None
    is_decoder: bool = False
    position_embedding_type: str = "absolute"


@dataclass(frozen=True)
class ReadingSettings:
    """The settings of sentence_bert_config.json."""

    max_seq_length: Annotated[int, Bounds(1, words="a whole number, 1 or more")] | None = None
    do_lower_case: bool = False


@dataclass(frozen=True)
class SentenceSettings:
    """The settings of config_sentence_transformers.json."""

    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    model_type: str = ""
    similarity_fn_name: str | None = None


HINT = f'sentence-transformers runs it: {install_hint("sentence-transformers")}, then load it with engine="torch"'
THRESHOLD = "backlight_threshold"  # in config.json: the activated score from which a document answers the query


def is_fused(folder: Path) -> bool:
    """Return whether the model in a folder adds a logit to a cosine (see NOTE [The fused score] in models/fused.py)."""
    return read_settings(folder / "config.json").get("model_type") == FUSED


def threshold_of(folder: Path) -> float | None:
    """Return the activated score below which a document does not answer, where config.json has one.

    Raises:
        InputError: it is no number.
    """
    found = read_settings(folder / "config.json").get(THRESHOLD)
    if found is not None and (isinstance(found, bool) or not isinstance(found, (int, float))):
        raise InputError(f"{THRESHOLD} in {folder / 'config.json'} must be a number, got {found!r}")
    return found


READ_TYPOS = "backlight_read_typos"  # in config.json: whether misspelt words of queries are read as others by default


def reads_typos(folder: Path) -> bool:
    """Return whether config.json says that misspelt words are read as others. Raises InputError: it says neither."""
    found = read_settings(folder / "config.json").get(READ_TYPOS, False)
    if not isinstance(found, bool):
        raise InputError(f"{READ_TYPOS} in {folder / 'config.json'} must be true or false, got {found!r}")
    return found


def model_settings(folder: Path) -> dict:
    """Return what config.json says, after its settings of the model have been checked.

    Raises:
        InputError: it is no JSON object, or a value in it is of another kind.
    """
    settings = read_settings(folder / "config.json")
    checked_settings(ModelSettings, settings, folder / "config.json")
    return settings


def _checked(kind: type[Kind], file: Path) -> Kind:
    return checked_settings(kind, read_settings(file), file)


_OLD_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_lasttoken": "lasttoken",
}
