"""Arguments that several commands share: the model, the method and the output, and how they are read."""

import argparse
import inspect
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from backlight.adapters.torch_library import DTYPES
from backlight.cli.main import notice
from backlight.cli.screens.terminal import progress
from backlight.engine.provenance import PACKAGE
from backlight.errors import InputError
from backlight.explain.methods.leave_one_out import UNITS
from backlight.explain.methods.registry import DEFAULT, METHODS, Method, method_called
from backlight.explain.reranker import ENGINES, Reranker
from backlight.explain.windows import BEST, MAX_WINDOWS, MEAN
from backlight.models.retrieval.index import (
    CANDIDATES,
    NONE,
    RERANKED_WHOLE,
    Index,
    build_index,
    candidate_count,
    check_retriever,
)

LEAVE_ONE_OUT = "leave-one-out"
NOT_OPTIONS = {"ranker", "pairs", "pair", "scores", "progress"}  # a method's arguments that its callers give


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add a query and the documents to rank for it."""
    parser.add_argument("query", help="the search query")
    parser.add_argument(
        "documents",
        nargs="+",
        metavar="FILE_OR_TEXT",
        help="a text file, a folder of .txt and .md files, the text itself, or - to read a text from standard input",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options for the model and how it runs."""
    parser.add_argument(
        "--model",
        default="builtin",
        help="a model folder, the hub name of a model in Hugging Face's local cache, or an installed package that "
        "contains a model; default: the built-in reranker",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="backlight",
        help="the engine that runs the model; torch also runs what backlight does not: other architectures, SPLADE, "
        "ColBERT, language models",
    )
    parser.add_argument(
        "--label", metavar="N", help="for a classifier with several logits: which one is the score, by number or name"
    )
    parser.add_argument("--instruction", metavar="TEXT", help="for a prompted model: what makes a document relevant")
    parser.add_argument(
        "--read-typos",
        action=argparse.BooleanOptionalAction,
        help="correct words of the query that look misspelt, and report it; on by default for the built-in model only",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cpu (default), or cuda, cuda:1, … for models of BERT's architecture; with --engine torch for any model, "
        "and also mps",
    )
    parser.add_argument(
        "--dtype",
        choices=(*DTYPES, "tf32"),
        help="the dtype to compute in (default float32); on cuda also tf32 and bfloat16; with --engine torch also "
        "bfloat16, float16, and auto (as the weights are stored)",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="with --engine torch: compile the layers with torch.compile; takes a minute, and pays off on long lists",
    )


def add_windows(parser: argparse.ArgumentParser, *, mean: bool = True) -> None:
    """Add the options for documents that are longer than the model's limit.

    Args:
        mean: whether the score may be the mean of all windows, and not only the best window's.
    """
    ways = (BEST, MEAN) if mean else (BEST,)
    parser.add_argument(
        "--windows",
        type=windows_called,
        choices=(*ways, None),
        default=BEST,
        metavar=f"{{{','.join((*ways, 'none'))}}}",
        help="how to read documents longer than the model's limit: in overlapping windows, scored by the best window "
        f"(default){' or by the mean of all windows' if mean else ''}; with none they are truncated, with a notice",
    )
    parser.add_argument(
        "--stride", type=positive, metavar="N", help="tokens from one window to the next (default: half a window)"
    )
    parser.add_argument(
        "--max-windows",
        type=whole_number,
        default=MAX_WINDOWS,
        metavar="N",
        help="score at most N windows of a document, the first and those that BM25 ranks highest for the query, with a "
        f"notice; 0 scores all (default {MAX_WINDOWS})",
    )


def reading_of(given: argparse.Namespace) -> dict[str, str | int | None]:
    """Return the options of `add_windows` as keyword arguments of `Reranker`."""
    return {"windows": given.windows, "stride": given.stride, "max_windows": given.max_windows}


def add_retrieval(parser: argparse.ArgumentParser) -> None:
    """Add the options for retrieving the candidates of a long list."""
    parser.add_argument(
        "--candidates",
        type=positive,
        metavar="N",
        help=f"rerank only the N documents that the retriever ranks highest; default: all of up to {RERANKED_WHOLE} "
        f"documents, {CANDIDATES} of more",
    )
    parser.add_argument(
        "--retriever",
        metavar="NAME",
        help="how candidates are retrieved: bm25; a bi-encoder, whose cosine is added to BM25's score (default for the "
        "built-in model: its own); or none, to rerank every document",
    )
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="cache the bi-encoder's document embeddings for later runs"
    )


def add_method(
    parser: argparse.ArgumentParser,
    default: str = DEFAULT,
    *,
    table: Mapping[str, Method] = METHODS,
    several: bool = False,
) -> None:
    """Add the options for the explanation method.

    Args:
        table: the methods to choose from.
        several: whether several methods may be named.
    """
    listing = type("ListMethods", (ListMethods,), {"table": table, "default_name": default})
    more = "; several, separated by commas, can be compared on the page" if several else ""
    parser.add_argument(
        "--method",
        default=default,
        metavar="NAME[,NAME]" if several else "NAME",
        help=f"the explanation method (default {default}); --methods lists all{more}",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the method, such as steps=64; may be repeated",
    )
    parser.add_argument("--methods", action=listing, nargs=0, help="list all methods with their options, and exit")


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """Add the options for measuring words and for the check."""
    parser.add_argument(
        "--budget",
        dest="measuring_budget",
        type=seconds,
        metavar="SECONDS",
        help="how long to measure words, for all documents together, such as 2s or 500ms (default 0.5s)",
    )
    parser.add_argument(
        "--unit", dest="measuring_unit", choices=UNITS, help="what to delete and measure (default: each word)"
    )
    parser.add_argument("--no-check", action="store_true", help="do not check explanations against the score")


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options for output files, and for the terminal's background."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a self-contained page")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw a picture")
    parser.add_argument("--png", type=Path, metavar="FILE", help="also draw a picture (needs Chromium or Chrome)")
    parser.add_argument("--json", action="store_true", help="print only JSON (fields: docs/explain.md)")
    parser.add_argument(
        "--theme", choices=("dark", "light"), help="the terminal's background (default: from COLORFGBG, else dark)"
    )


def windows_called(text: str) -> str | None:
    """Parse `--windows`: `none` is None."""
    return None if text == "none" else text


def seconds(text: str) -> float:
    """Parse a time above 0: `2`, `2s`, `1.5s`, `500ms`.

    >>> seconds("500ms"), seconds("2s")
    (0.5, 2.0)
    """
    number, unit = (text[:-2], 1000) if text.endswith("ms") else (text.removesuffix("s"), 1)
    try:
        found = float(number) / unit
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a time above 0, like 2s or 500ms, got {text}")
    return found


def positive(text: str) -> int:
    """Parse a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number, 1 or more, got {text}")
    return int(text)


def whole_number(text: str) -> int:
    """Parse a whole number of 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more, got {text}")
    return int(text)


def reranker_of(given: argparse.Namespace) -> Reranker:
    """Return the model that `add_model`'s arguments name; backlight's own warnings become lines on standard error.

    Raises:
        InputError: there is no such model, or the engine cannot run it.
    """
    with warnings.catch_warnings(record=True) as warned:
        found = Reranker.from_pretrained(
            given.model,
            engine=given.engine,
            label=given.label,
            instruction=given.instruction,
            device=given.device,
            dtype=given.dtype,
            compile=given.compile,
            read_typos=given.read_typos,
        )
    for one in warned:
        if one.filename.startswith(PACKAGE) and one.category is UserWarning:
            notice(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return found


def retriever_of(given: argparse.Namespace, texts: Sequence[str], reranker: Reranker) -> tuple[str | Index, int]:
    """Return the retriever that `add_retrieval`'s arguments name, ready to search, and the number of candidates.

    Raises:
        InputError: there is no such retriever, or it has no embeddings to cache.
    """
    retriever = given.retriever or reranker.retriever
    if given.retriever or given.cache:
        check_retriever(retriever, given.cache)
    count = candidate_count(len(texts), given.candidates, retriever)
    if count == len(texts):
        return NONE, count
    model = None if given.retriever else reranker.similarity
    with progress(len(texts), "finding candidates") as advance:
        return build_index(texts, retriever, cache=given.cache, model=model, progress=advance), count


def methods_of(given: argparse.Namespace) -> list[tuple[Method, dict]]:
    """Return the methods that `add_method`'s arguments name, each with those of the options that it has.

    Raises:
        InputError: there is no such method, or none of them has an option that was given.
    """
    names = [name.strip() for name in given.method.split(",")]
    methods = [method_called(name) for name in dict.fromkeys(names)]
    measuring = {name: getattr(given, f"measuring_{name}", None) for name in ("budget", "unit")}
    given_also = {name: value for name, value in measuring.items() if value is not None}
    if given_also and LEAVE_ONE_OUT not in names:
        raise InputError(f"--{next(iter(given_also))} must come with --method {LEAVE_ONE_OUT}, which measures words")
    return [
        (method, own | (given_also if method.name == LEAVE_ONE_OUT else {})) for method, own in _chosen(methods, given)
    ]


def _chosen(methods: Sequence[Method], given: argparse.Namespace) -> list[tuple[Method, dict]]:
    """Return methods with those of the options `--option NAME=VALUE` that each has."""
    if len(methods) == 1:
        return [(methods[0], options_of(methods[0], given.option))]
    known = set().union(*(defaults_of(method) for method in methods))
    for said in given.option:
        name = said.partition("=")[0]
        if name not in known:
            offered = ", ".join(sorted(known)) or "none"
            raise InputError(f"--option must name an option of one of the methods ({offered}), got {name}")
    return [
        (method, options_of(method, [said for said in given.option if said.partition("=")[0] in defaults_of(method)]))
        for method in methods
    ]


def options_of(method: Method, given: Sequence[str]) -> dict:
    """Return the options of `--option NAME=VALUE`, with values of the types that the method expects.

    Raises:
        InputError: the method has no such option, or the value has the wrong type.
    """
    known, found = defaults_of(method), {}
    for said in given:
        name, equals, value = said.partition("=")
        if not equals:
            raise InputError(f"--option must be NAME=VALUE, got {said}")
        if name not in known:
            offered = f"has {', '.join(known)}" if known else "has no options"
            raise InputError(f"--option must name an option of {method.name}, got {name}: {method.name} {offered}")
        found[name] = _as_kind_of(known[name], _types_of(method, name), value, name)
    return found


def defaults_of(method: Method) -> Mapping[str, object]:
    """Return the options of a method that a command line can give, with their defaults."""
    parameters = inspect.signature(method.explain).parameters.values()
    return {
        one.name: one.default
        for one in parameters
        if one.name not in NOT_OPTIONS and isinstance(one.default, (bool, int, float, str, type(None)))
    }


def _types_of(method: Method, name: str) -> tuple[type, ...]:
    """Return the types that an option's annotation names: `int | None` is int; none if it has no annotation."""
    named = inspect.signature(method.explain).parameters[name].annotation
    return tuple(kind for kind in (named, *get_args(named)) if kind in (int, float, str))


def _as_kind_of(default: object, named: tuple[type, ...], value: str, name: str) -> object:
    """Convert a text to the type of the default; without a default, to the one that the annotation names.

    Without either, a text that looks like a number becomes one.
    """
    kinds = (named or (int, float, str)) if default is None else (type(default),)
    if isinstance(default, bool):
        if value not in ("true", "false"):
            raise InputError(f"--option {name} must be true or false, got {value}")
        return value == "true"
    for kind in kinds:
        try:
            return kind(value)
        except ValueError:
            continue
    kind = "a whole number" if kinds == (int,) else "a number"
    raise InputError(f"--option {name} must be {kind}, got {value}")


class ListMethods(argparse.Action):
    """Print the methods of a table, a line or two each, and exit."""

    table: Mapping[str, Method] = METHODS
    default_name = DEFAULT

    def __call__(self, parser, namespace, values, option_string=None):
        """List and exit with 0."""
        print("\n".join(line for method in self.table.values() for line in self._described(method)))
        parser.exit()

    def _described(self, method: Method) -> list[str]:
        default = " (default)" if method.name == self.default_name else ""
        kind = "signed" if method.signed else "unsigned"
        needs = "; needs --engine backlight" if method.native else ""
        options = ", ".join(f"{name}={value}" for name, value in defaults_of(method).items())
        lines = [f"{method.name}{default}: {method.summary}; {kind}{needs}"]
        return [*lines, f"    options: {options}"] if options else lines
