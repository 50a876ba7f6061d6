"""Which kind of model an object in memory is, and the scorer that runs it.

Objects are recognised by the paths of their classes, so no library is imported that the user has not imported.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.adapters.padded_batches import Padding
from backlight.adapters.torch_library import checked_device, checked_dtype, torch_library
from backlight.adapters.torch_models.encoders import (
    SIMILARITIES,
    TASKS,
    LateInteraction,
    Reading,
    SparseTerms,
    TwoTowers,
    similarity_of,
)
from backlight.adapters.torch_models.kinds import (
    AnswerLogit,
    Classifier,
    EmbeddingFunction,
    SentencePairs,
    reads_and_answers,
)
from backlight.adapters.torch_models.readers import (
    FUNCTION_OF_PAIRS,
    PROBE,
    check_separate,
    ended,
    prompt_in_chat,
    prompt_of,
    reads_alike,
    separate_reader,
    tokenizer_in_memory,
    tokenizer_restored,
)
from backlight.adapters.torch_models.scorer import ROUNDING, TorchScorer
from backlight.adapters.torch_models.separate_scorer import SeparateScorer
from backlight.adapters.torch_ranker import longest_of, rounding_of
from backlight.errors import InputError
from backlight.models.pair_function import PairFunction
from backlight.models.pairs import PairReader
from backlight.models.prompts import SIDES, PromptReader, prompt_of_side
from backlight.models.ranker import activation_of, chosen_label, labels_of
from backlight.models.scorer import Scorer
from backlight.models.scoring import ACTIVATIONS, Activation

SCORE_NAMES = {  # by similarity, of what is compared
    "cosine": "cosine of {}",
    "dot": "dot product of {}",
    "euclidean": "negative Euclidean distance of {}",
    "manhattan": "negative Manhattan distance of {}",
    "maxsim": "MaxSim",
    "meanmaxsim": "mean MaxSim",
}
QUANTISED = {"int8", "uint8", "int4", "uint4"}


@dataclass(frozen=True, eq=False)
class Options:
    """What a user says of a model in memory; the arguments of `Reranker.of`."""

    tokenizer: Any = None
    embeddings: Any = None
    label: int | str | None = None
    prompt: str | None = None
    answers: str | Sequence[str] | None = None
    instruction: str | None = None
    max_length: int | None = None
    activation: str | Activation | None = None
    device: str | None = None
    dtype: str | None = None
    name: str | None = None
    compile: bool = False

    def check_unused(self, kind: str, *names: str) -> None:
        """Raise if one of these was given. Raises InputError: it was, and a model of this kind has no use for it."""
        for name in names:
            if getattr(self, name) not in (None, False):
                raise InputError(f"{name} must be left out: {kind} has no use for it")


def scorer_of(model: Any, options: Options) -> Scorer:
    """Return the scorer of a model in memory.

    Raises:
        InputError: it is of no kind that can be scored, an option does not fit, or its weights are not there.
    """
    model = unwrapped(model)
    paths = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    if "torch.Module" in paths:
        check_weights(model, type(model).__name__)
    for path, make in KINDS.items():
        if path in paths:
            return make(model, options)
    if callable(model) and (options.tokenizer is not None or options.embeddings is not None):
        return _embedding_function(model, options)
    if "torch.Module" in paths or not callable(model):
        raise InputError(
            f"{type(model).__name__} is no model of sentence-transformers or transformers: give a function from "
            f"(inputs_embeds, attention_mask) to scores with tokenizer= and embeddings=, {FUNCTION_OF_PAIRS}"
        )
    return _pair_function(model, options)


def unwrapped(model: Any) -> Any:
    """Return the model inside `torch.compile`'s and data parallel wrappers."""
    while True:
        kind = type(model).__name__
        inner = vars(model).get("_modules", {}) if hasattr(model, "__dict__") else {}
        if kind == "OptimizedModule":
            model = inner["_orig_mod"]
        elif kind in ("DataParallel", "DistributedDataParallel"):
            model = inner["module"]
        else:
            return model


def check_weights(model: Any, name: str) -> None:
    """Raise unless a module's weights are there, and numbers that gradients pass through."""
    weights = list(model.named_parameters())
    absent = [key for key, weight in weights if weight.is_meta]
    if absent:
        raise InputError(
            f"the weights of {name} must be in memory, and {len(absent)} of {len(weights)} are on the meta device, "
            f"{absent[0]} among them: load the model without device_map, or onto one device"
        )
    kept = {str(weight.dtype).removeprefix("torch.") for _, weight in weights}
    if kept & QUANTISED or getattr(model, "is_quantized", False):
        raise InputError(
            f"the weights of {name} must be float32, bfloat16 or float16, got a model in 8 or 4 bits, whose gradients "
            "are not those of its scores: load it without quantization_config"
        )


def _classifier(model: Any, options: Options) -> TorchScorer:
    kind = type(model).__name__
    options.check_unused(kind, "embeddings")
    tokenizer = tokenizer_in_memory(_needed_tokenizer(options, kind), _longest(options, longest_of(model)))
    generates = kind.endswith("ForConditionalGeneration") and reads_and_answers(model)
    if generates or kind.endswith(("ForCausalLM", "LMHeadModel")):
        return _language_model(model, options, tokenizer)
    if not kind.endswith("ForSequenceClassification"):
        raise InputError(
            f"{kind} has no head that scores a pair: give a …ForSequenceClassification or …ForCausalLM, wrap it in "
            "sentence-transformers' SentenceTransformer, SparseEncoder or MultiVectorEncoder, or give a function from "
            "(inputs_embeds, attention_mask) to scores"
        )
    options.check_unused(kind, "prompt", "answers", "instruction")
    settings = model.config.to_dict()
    labels = labels_of(settings)
    chosen = chosen_label(options.label, labels, kind)
    takes = set(inspect.signature(model.forward).parameters)
    segments = {"token_type_ids"} <= takes & set(getattr(options.tokenizer, "model_input_names", ()))
    regression = settings.get("problem_type") == "regression"
    return TorchScorer(
        Classifier(model, label=chosen, segments=segments),
        PairReader(tokenizer),
        score_name=_score_name("prediction" if regression else "logit", labels, chosen),
        activation=options.activation or ("identity" if regression else activation_of(settings)),
        padding=_padding(options.tokenizer),
        **_run_on(model, options, kind),
    )


def _language_model(model: Any, options: Options, tokenizer: Any) -> TorchScorer:
    kind = type(model).__name__
    options.check_unused(kind, "label")
    prompt = prompt_of(options.prompt, options.instruction, tokenizer, kind)
    if reads_and_answers(model):
        prompt = ended(prompt, options.tokenizer)
    reader = PromptReader(tokenizer, prompt)
    words = (options.answers,) if isinstance(options.answers, str) else tuple(options.answers or ("yes", "no"))
    if not 1 <= len(words) <= 2:
        raise InputError(f"answers must be the token whose logit is the score, or two to compare, got {len(words)}")
    ids = reader.answers(words[0], words[-1])[: len(words)]
    return TorchScorer(
        AnswerLogit(model, ids),
        reader,
        score_name=f"logit of {' rather than '.join(words)}",
        activation=options.activation or ("sigmoid" if len(words) == 2 else "identity"),
        padding=_padding(options.tokenizer),
        **_run_on(model, options, kind),
    )


def _sentence_pairs(model: Any, options: Options) -> TorchScorer:
    kind, core = type(model).__name__, _core_of(model)
    options.check_unused(kind, "tokenizer", "embeddings", "prompt", "answers", "instruction")
    labels = labels_of(model.config.to_dict()) if model.num_labels > 1 else ["score"]
    chosen = chosen_label(options.label, labels, kind)
    most = model.max_seq_length or longest_of(core)
    tokenizer, prompt = tokenizer_in_memory(model.tokenizer, most), None

    def preprocess(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        with tokenizer_restored(model.tokenizer):
            return model.preprocess(pairs, prompt=model.prompts.get(model.default_prompt_name))

    features = preprocess([PROBE])
    reader: PairReader | PromptReader | None = PairReader(tokenizer)
    if not reads_alike(reader, features):
        prompt = prompt_in_chat(preprocess, model.tokenizer)
        reader = prompt and PromptReader(tokenizer, prompt)
        if reader is None or not reads_alike(reader, features):
            raise InputError(
                f"{kind} reads pairs in a way that backlight does not know: its preprocessing gives other tokens than "
                f"its tokenizer; {FUNCTION_OF_PAIRS.removeprefix('or ')}"
            )
    if options.max_length is not None:
        tokenizer = tokenizer_in_memory(model.tokenizer, _longest(options, most))
        reader = PairReader(tokenizer) if prompt is None else PromptReader(tokenizer, prompt)
    constants, segments = _constants(features)
    activation = options.activation or _shown_by(model.activation_fn)
    return TorchScorer(
        SentencePairs(model, label=chosen, constants=constants, segments=segments),
        reader,
        score_name=_score_name("logit", labels, chosen),
        activation=activation,
        padding=_padding(model.tokenizer),
        **_run_on(model, options, _name_of(core)),
    )


def _two_towers(model: Any, options: Options) -> TorchScorer:
    return _apart(model, options, TwoTowers, similarity_of(model, list(SIMILARITIES), "cosine"))


def _sparse_terms(model: Any, options: Options) -> TorchScorer:
    return _apart(model, options, SparseTerms, similarity_of(model, list(SIMILARITIES), "dot"))


def _late_interaction(model: Any, options: Options) -> TorchScorer:
    return _apart(model, options, LateInteraction, similarity_of(model, ["maxsim", "meanmaxsim"], "maxsim"))


def _apart(model: Any, options: Options, kind: type[TwoTowers], similarity: str) -> TorchScorer:
    """Return the scorer of a model that reads query and document apart."""
    core, name = _core_of(model), type(model).__name__
    options.check_unused(name, "tokenizer", "embeddings", "label", "prompt", "answers", "instruction")
    first = model[0]
    prompts = tuple(prompt_of_side(model.prompts, model.default_prompt_name, names) for names in SIDES)
    most = model.max_seq_length or longest_of(core)
    expansion = getattr(first, "query_expansion", None)
    lengths = [getattr(first, f"{task}_length", None) or most for task in TASKS]
    if expansion is not None:
        lengths[0] = expansion["length"] if expansion["strategy"] == "fixed" else max(lengths[0], expansion["length"])
    with tokenizer_restored(model.tokenizer):
        features = [
            model.preprocess([text], prompt=prompt or None, task=task)
            for text, prompt, task in zip(PROBE, prompts, TASKS)
        ]
    lengths = [min(length, most) for length in lengths]
    reader = separate_reader(model.tokenizer, prompts, lengths)
    check_separate(reader, features, name)
    if options.max_length is not None:
        reader = separate_reader(model.tokenizer, prompts, [_longest(options, length) for length in lengths])
    readings = []
    for task, found in zip(TASKS, features):
        constants, segments = _constants(found)
        own = expansion if task == "query" else None
        readings.append(Reading(constants, segments, own, own and _expansion_id(model.tokenizer, own)))
    compared = "term weights" if kind is SparseTerms else "embeddings"
    return SeparateScorer(
        kind(model, readings, similarity),
        reader,
        score_name=SCORE_NAMES[similarity].format(compared),
        activation=options.activation or "identity",
        highest_score=1.0 if similarity == "cosine" else None,
        padding=_padding(model.tokenizer, sides=2),
        **_run_on(model, options, _name_of(core)),
    )


def _embedding_function(function: Callable, options: Options) -> TorchScorer:
    kind = _function_name(function)
    options.check_unused(kind, "prompt", "answers", "instruction")
    layer = options.embeddings
    if layer is None and hasattr(function, "get_input_embeddings"):
        layer = function.get_input_embeddings()
    if not callable(layer):
        raise InputError(
            f"embeddings must be the layer that gives {kind} its word embeddings, as "
            f"model.get_input_embeddings() returns it, got {type(layer).__name__}"
        )
    if isinstance(options.label, str):
        raise InputError(f"label must be a number, as {kind} has no names of labels, got {options.label}")
    tokenizer = tokenizer_in_memory(_needed_tokenizer(options, kind), _longest(options, None))
    return TorchScorer(
        EmbeddingFunction(function, layer, name=kind, label=options.label),
        PairReader(tokenizer),
        score_name="score" if options.label is None else f"score of label {options.label}",
        activation=options.activation or "identity",
        padding=_padding(options.tokenizer),
        **_run_on(layer, options, kind),
    )


def _pair_function(function: Callable, options: Options) -> PairFunction:
    kind = _function_name(function)
    options.check_unused(
        "a function of pairs", "label", "prompt", "answers", "instruction", "max_length", "device", "dtype", "compile"
    )
    return PairFunction(function, name=options.name or kind, activation=options.activation or "identity")


def _function_name(function: Callable) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "a function" if name == "<lambda>" else name


KINDS: dict[str, Callable[[Any, Options], TorchScorer]] = {  # by class, of a library's top module
    "sentence_transformers.CrossEncoder": _sentence_pairs,
    "sentence_transformers.SparseEncoder": _sparse_terms,
    "sentence_transformers.MultiVectorEncoder": _late_interaction,
    "sentence_transformers.SentenceTransformer": _two_towers,
    "transformers.PreTrainedModel": _classifier,
}


def _core_of(model: Any) -> Any:
    """Return the transformers model inside one of sentence-transformers."""
    core, name = getattr(model, "transformers_model", None), type(model).__name__
    if core is None or not hasattr(model, "preprocess"):
        raise InputError(
            f"{name} must be one of sentence-transformers 6 or later with a model of transformers in it, "
            f"{FUNCTION_OF_PAIRS}"
        )
    if type(model[0]).__name__ == "Router":
        raise InputError(f"{name} reads queries and documents by two models (a Router): {FUNCTION_OF_PAIRS[3:]}")
    return core


def _constants(features: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the features that are no tensors, and whether segments are among the others."""
    known = {"input_ids", "attention_mask", "token_type_ids", "query_expansion_positions"}
    return {key: value for key, value in features.items() if key not in known}, "token_type_ids" in features


def _expansion_id(tokenizer: Any, expansion: Mapping[str, Any]) -> int:
    if expansion["token"] is not None:
        return tokenizer.convert_tokens_to_ids(expansion["token"])
    return tokenizer.eos_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id


def _shown_by(activation: Callable) -> str | Activation:
    """Return how a CrossEncoder shows its scores: a name of `ACTIVATIONS`, or a function of arrays."""
    name = type(activation).__name__.lower()
    if name in ACTIVATIONS:
        return name
    torch = torch_library()

    def shown(scores: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return activation(torch.from_numpy(np.asarray(scores, np.float32))).numpy()

    return shown


def _needed_tokenizer(options: Options, kind: str) -> Any:
    if options.tokenizer is None:
        raise InputError(f"tokenizer must be given with {kind}: Reranker.of(model, tokenizer=tokenizer)")
    return options.tokenizer


def _longest(options: Options, most: int | None) -> int:
    if options.max_length is not None and options.max_length < 1:
        raise InputError(f"max_length must be 1 or more, got {options.max_length}")
    return min(options.max_length or LONGEST_FUNCTION, most or LONGEST_FUNCTION)


LONGEST_FUNCTION = 512  # tokens that a function is given where neither the user nor its tokenizer has a limit


def _padding(tokenizer: Any, sides: int = 1) -> Padding:
    pad = getattr(tokenizer, "pad_token_id", None)
    return Padding(sides, pad=pad or 0, left=getattr(tokenizer, "padding_side", "right") == "left")


def _score_name(what: str, labels: Sequence[str], chosen: int) -> str:
    return what if len(labels) == 1 else f"{what} of {labels[chosen]}"


def _name_of(core: Any) -> str:
    path = getattr(core.config, "_name_or_path", "") or type(core).__name__
    return str(path).rstrip("/").rsplit("/", 1)[-1]


def _run_on(module: Any, options: Options, name: str) -> dict[str, Any]:
    """Return the name, and where and in what dtype a model runs: where its weights are, and in theirs.

    Raises:
        InputError: another device was given, which would move the model.
    """
    weights = list(module.parameters()) if hasattr(module, "parameters") else []
    there = str(weights[0].device) if weights else "cpu"
    device = there if options.device is None else checked_device(options.device)
    if weights and device.partition(":")[0] != there.partition(":")[0]:
        raise InputError(
            f"device must be {there}, where the weights of {name} are, got {device}: move it, .to('{device}')"
        )
    dtype = None if options.dtype in (None, "auto") else checked_dtype(options.dtype)
    kept = {str(weight.dtype).removeprefix("torch.") for weight in weights if weight.is_floating_point()}
    if dtype == "float32" and kept - {"float32"}:
        raise InputError(f"dtype must be {min(kept)}, as the weights of {name} are, got float32: cast it, .float()")
    rounding = max(rounding_of(module) if weights else ROUNDING["float32"], ROUNDING[dtype or "float32"])
    return {
        "name": options.name or name,
        "device": there if weights else device,
        "dtype": None if dtype == "float32" else dtype,
        "rounding": rounding,
        "compile": options.compile,
    }
