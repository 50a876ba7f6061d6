"""Arguments that several commands share: the model, the method, what is written, and what they turn into."""

import argparse
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

from backlight.adapters.torch_library import DTYPES
from backlight.cli.screens.terminal import progress
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
NOT_OPTIONS = {"ranker", "pairs", "pair", "scores", "progress"}  # what a method is given by those who call it


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add a query and the documents to rank for it."""
    parser.add_argument("query", help="what to look for")
    parser.add_argument(
        "documents",
        nargs="+",
        metavar="FILE_OR_TEXT",
        help="a text file, a folder of .txt and .md files, a text itself, or - for a text from standard input",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add which model scores."""
    parser.add_argument(
        "--model",
        default="builtin",
        help="a model folder, or an installed package that carries one; by default the reranker that backlight carries",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="backlight",
        help="what computes; torch also runs models whose architecture backlight does not know",
    )
    parser.add_argument(
        "--label", metavar="N", help="which logit is the score, of a classifier with several: its number or name"
    )
    parser.add_argument(
        "--instruction", metavar="TEXT", help="what makes a document relevant, for a model whose prompt says it"
    )
    parser.add_argument(
        "--read-typos",
        action=argparse.BooleanOptionalAction,
        help="read words of the query that look misspelt as the words they stand for, and say so; by default with the "
        "built-in model, and with no other",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="cpu (the default), cuda or cuda:1 …, for models of BERT's shape; with --engine torch for any, and mps",
    )
    parser.add_argument(
        "--dtype",
        choices=(*DTYPES, "tf32"),
        help="what the model computes in, float32 by default: on cuda tf32 or bfloat16; with --engine torch bfloat16, "
        "float16 or auto, as its weights are stored",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="with --engine torch: torch.compile the model's layers, which takes a minute and pays on long lists",
    )


def add_windows(parser: argparse.ArgumentParser, *, mean: bool = True) -> None:
    """Add how documents are read that are longer than the model reads.

    Args:
        mean: whether the mean of all windows may be a score, not only the best window's.
    """
    ways = (BEST, MEAN) if mean else (BEST,)
    parser.add_argument(
        "--windows",
        type=windows_called,
        choices=(*ways, None),
        default=BEST,
        metavar=f"{{{','.join((*ways, 'none'))}}}",
        help="how documents are read that are longer than the model reads: in windows that overlap, scored by the best "
        f"(the default){' or by the mean of all' if mean else ''}, or none: cut at their end, and what was cut is said",
    )
    parser.add_argument(
        "--stride", type=positive, metavar="N", help="tokens from one window to the next; by default half a window"
    )
    parser.add_argument(
        "--max-windows",
        type=whole_number,
        default=MAX_WINDOWS,
        metavar="N",
        help="score at most N windows of a document, the first and those that BM25 ranks highest for the query, and "
        f"say so; 0 scores all; by default {MAX_WINDOWS}",
    )


def reading_of(given: argparse.Namespace) -> dict[str, str | int | None]:
    """Return what `add_windows`'s arguments say, as `Reranker` takes it."""
    return {"windows": given.windows, "stride": given.stride, "max_windows": given.max_windows}


def add_retrieval(parser: argparse.ArgumentParser) -> None:
    """Add how many documents of a long list are reranked, and what finds them."""
    parser.add_argument(
        "--candidates",
        type=positive,
        metavar="N",
        help=f"rerank only the N documents that the retriever ranks highest; by default all of up to {RERANKED_WHOLE} "
        f"documents, and {CANDIDATES} of more",
    )
    parser.add_argument(
        "--retriever",
        metavar="NAME",
        help="what finds the candidates: bm25; a bi-encoder, whose cosine is then added to bm25 (the default of "
        "the built-in model: its own); or none, to rerank every document",
    )
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="keep the bi-encoder's embeddings of documents for later runs"
    )


def add_method(
    parser: argparse.ArgumentParser,
    default: str = DEFAULT,
    *,
    table: Mapping[str, Method] = METHODS,
    several: bool = False,
) -> None:
    """Add how scores are explained, and a list of the ways.

    Args:
        table: the methods there are.
        several: whether several methods may be named at once.
    """
    listing = type("ListMethods", (ListMethods,), {"table": table, "default_name": default})
    more = "; several, separated by commas, are shown together on the page" if several else ""
    parser.add_argument(
        "--method",
        default=default,
        metavar="NAME[,NAME]" if several else "NAME",
        help=f"how to explain; by default {default}; --methods lists them{more}",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method, like steps=64; may be given again",
    )
    parser.add_argument("--methods", action=listing, nargs=0, help="list the methods and their options, and end")


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """Add what the default method measures, how long, and whether explanations are checked."""
    parser.add_argument(
        "--budget",
        dest="measuring_budget",
        type=seconds,
        metavar="SECONDS",
        help="how long to measure words, of all documents together, like 2s or 500ms; by default 0.5s",
    )
    parser.add_argument(
        "--unit", dest="measuring_unit", choices=UNITS, help="what is deleted and measured; by default each word"
    )
    parser.add_argument("--no-check", action="store_true", help="show explanations without holding them to the score")


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options for output files, and for the terminal's background."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page that stands alone")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw a picture")
    parser.add_argument("--png", type=Path, metavar="FILE", help="also draw a picture; Chromium or Chrome does it")
    parser.add_argument(
        "--json", action="store_true", help="print data (docs/explain.md describes it) and nothing else"
    )
    parser.add_argument(
        "--theme", choices=("dark", "light"), help="the terminal's background; by default as COLORFGBG says, else dark"
    )


def windows_called(text: str) -> str | None:
    """Return a way to read long documents, as argparse reads it: `none` is None."""
    return None if text == "none" else text


def seconds(text: str) -> float:
    """Return a time above 0, as argparse reads one: `2`, `2s`, `1.5s`, `500ms`.

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
    """Return a number of 1 or more, as argparse reads one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number, 1 or more, got {text}")
    return int(text)


def whole_number(text: str) -> int:
    """Return a number of 0 or more, as argparse reads one."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more, got {text}")
    return int(text)


def reranker_of(given: argparse.Namespace) -> Reranker:
    """Return the model that `add_model`'s arguments name.

    Raises:
        InputError: there is none, or the engine cannot run it.
    """
    return Reranker.from_pretrained(
        given.model,
        engine=given.engine,
        label=given.label,
        instruction=given.instruction,
        device=given.device,
        dtype=given.dtype,
        compile=given.compile,
        read_typos=given.read_typos,
    )


def retriever_of(given: argparse.Namespace, texts: Sequence[str], reranker: Reranker) -> tuple[str | Index, int]:
    """Return what finds candidates as `add_retrieval`'s arguments say, ready to search, and how many it gives.

    Raises:
        InputError: there is no such retriever, or no embeddings to keep.
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
    """Return what `--option NAME=VALUE` says, as the method's own options.

    Raises:
        InputError: the method has no such option, or the value is not of its kind.
    """
    known, found = defaults_of(method), {}
    for said in given:
        name, equals, value = said.partition("=")
        if not equals:
            raise InputError(f"--option must be NAME=VALUE, got {said}")
        if name not in known:
            offered = f"has {', '.join(known)}" if known else "has no options"
            raise InputError(f"--option must name an option of {method.name}, got {name}: {method.name} {offered}")
        found[name] = _as_kind_of(known[name], value, name)
    return found


def defaults_of(method: Method) -> Mapping[str, object]:
    """Return the options of a method that a command line can give, with their defaults."""
    parameters = inspect.signature(method.explain).parameters.values()
    return {
        one.name: one.default
        for one in parameters
        if one.name not in NOT_OPTIONS and isinstance(one.default, (bool, int, float, str, type(None)))
    }


def _as_kind_of(default: object, value: str, name: str) -> object:
    """Return a text as a number or a truth, if the default is one; where there is no default, as what it looks like."""
    kinds = (int, float) if default is None else (type(default),)
    if isinstance(default, bool):
        if value not in ("true", "false"):
            raise InputError(f"--option {name} must be true or false, got {value}")
        return value == "true"
    for kind in kinds:
        try:
            return kind(value)
        except ValueError:
            continue
    if default is None:
        return value
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise InputError(f"--option {name} must be {kind}, got {value}")


class ListMethods(argparse.Action):
    """Print the methods of a table, a line or two each, and end."""

    table: Mapping[str, Method] = METHODS
    default_name = DEFAULT

    def __call__(self, parser, namespace, values, option_string=None):
        """List and exit with 0."""
        print("\n".join(line for method in self.table.values() for line in self._described(method)))
        parser.exit()

    def _described(self, method: Method) -> list[str]:
        default = " (default)" if method.name == self.default_name else ""
        kind = "with signs" if method.signed else "sizes without signs"
        needs = "; on backlight's engine only" if method.native else ""
        options = ", ".join(f"{name}={value}" for name, value in defaults_of(method).items())
        lines = [f"{method.name}{default}: {method.summary}; {kind}{needs}"]
        return [*lines, f"    options: {options}"] if options else lines
