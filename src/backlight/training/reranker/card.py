"""The model card of a trained reranker, written from the run."""

import textwrap
from collections.abc import Mapping, Sequence

from backlight.models.checkpoint import BUILTIN
from backlight.report.intervals import Mean
from backlight.training.reranker.calibration import Calibration
from backlight.training.reranker.model import TrainedModel
from backlight.training.reranker.result import Result
from backlight.training.reranker.validation import Figures

UNKNOWN = "unknown"


def card_of(result: Result, config: Mapping, model: TrainedModel) -> str:
    """Return the card, as Markdown with the front matter of a model hub.

    Args:
        config: what the run's config.json says: settings, data, sources, versions.
        model: the model.
    """
    settings = config["settings"]
    parts = [
        ["---", "pipeline_tag: text-ranking", "library_name: backlight", "---"],
        _what(settings, model),
        _sources(config),
        _ranking(result, settings),
        _calibration(result.calibration),
        _training(result, config, model),
        _limits(result, config),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _what(settings: Mapping, model: TrainedModel) -> list[str]:
    config = model.scorer.encoder.config
    start = "the reranker that comes with backlight" if settings["start"] == BUILTIN else f"`{settings['start']}`"
    head = ", whose encoder got a new head" if model.new_head else ""
    return [
        "# A reranker",
        "",
        f"A cross-encoder, trained by `backlight train-reranker` from {start}{head}: it reads a query and a document",
        "together and outputs a logit, whose sigmoid is the probability that the document answers the query.",
        "",
        "```python",
        "from backlight.explain.reranker import Reranker",
        "",
        'reranker = Reranker.from_pretrained("FOLDER")',
        'print(reranker.rank("a query", ["a document", "another document"]))',
        "```",
        "",
        f"{config.num_hidden_layers} layers of width {config.hidden_size}; reads up to {config.max_tokens} tokens of a "
        f"pair, and was trained on the first {settings['max_length']}.",
    ]


def _sources(config: Mapping) -> list[str]:
    named, start = config.get("sources") or [], config["start"]["sha256"] or UNKNOWN
    lines = ["## Data and licences", "", "| file | SHA-256 |", "|---|---|"]
    lines += [f"| {name} | `{digest}` |" for name, digest in zip(config["files"], config["data"]["sha256"])]
    said = [f"- {source}" for source in named] or [f'- {UNKNOWN}: no source was named (`--source "name, licence"`)']
    return [
        *lines,
        "",
        "Sources of the texts:",
        "",
        *said,
        "",
        f"Start: SHA-256 of its weights `{start}`.",
    ]


def _ranking(result: Result, settings: Mapping) -> list[str]:
    how = "BM25" if settings["mining_model"] is None else f"BM25 and of {settings['mining_model']}"
    return [
        "## How well it ranks",
        "",
        paragraph(
            f"nDCG@10 on held-out queries. For each, its documents in the data and the top results of {how} are",
            f"ranked, {settings['candidates']} in total. Positives are always among them; negatives are those that",
            "BM25 ranks highest, which is hard for BM25. The weights were selected on some of these queries, which",
            "favours the model a little. Intervals are 95 %, by paired bootstrap over queries.",
        ),
        "",
        *figure_lines(result.figures),
    ]


def figure_lines(figures: Mapping[str, Figures]) -> list[str]:
    """Return the figures as a table."""
    lines = ["| domain | queries | BM25 | before | after | gain | over BM25 |", "|---|---|---|---|---|---|---|"]
    return lines + [
        f"| {name} | {one.queries:,} | {one.bm25.value:.3f} | {one.before.value:.3f} | {one.after.value:.3f} | "
        f"{_signed(one.gain)} | {_signed(one.over_bm25)} |"
        for name, one in figures.items()
    ]


def paragraph(*lines: str) -> str:
    """Return a paragraph, wrapped anew."""
    return textwrap.fill(" ".join(lines), 120, break_long_words=False)


def _signed(mean: Mean) -> str:
    return f"{mean.value:+.3f} ({mean.low:+.3f} to {mean.high:+.3f})"


def _calibration(calibration: Calibration) -> list[str]:
    before, after, platt = calibration.before, calibration.after, calibration.platt
    rows = [f"| {name} | {before[name]:.3f} | {after[name]:.3f} |" for name in before]
    return [
        "## What its score means",
        "",
        paragraph(
            "A scale and an offset of the logit were fitted on the held-out queries' documents (Platt 1999) and are",
            f"part of the last layer: {platt.scale:.4g} · trained logit {platt.offset:+.4g}. The sigmoid of the logit",
            "is the probability that a document among such candidates is relevant; if relevant documents are more or",
            "less frequent, it is too low or too high.",
        ),
        "",
        "Expected calibration error (ten bins); after: with a scale and an offset from the other half of the queries.",
        "",
        "| domain | before | after |",
        "|---|---|---|",
        *rows,
    ]


def _training(result: Result, config: Mapping, model: TrainedModel) -> list[str]:
    settings = config["settings"]
    loss, rates = settings["loss"], settings["optimisation"]
    planned = config["training"]["steps"]
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    rows: Sequence[tuple[str, object]] = (
        *((name, f"{count:,}") for name, count in result.counts.items()),
        ("steps", f"{result.steps:,} of {planned:,}; the weights are those after step {result.best_step:,}"),
        ("queries per step, negatives per positive", f"{settings['queries']}, {settings['negatives']}"),
        ("minutes of training and validation", f"{result.minutes:.1f}"),
        ("seed", settings["seed"]),
        ("peak learning rate", rates["learning_rate"]),
        (
            "warm-up, weight decay, clipping",
            f"{rates['warmup_ratio']:.0%}, {rates['weight_decay']}, {rates['max_grad_norm']}",
        ),
        ("negatives mined by", "BM25" + (f" and {settings['mining_model']}" if settings["mining_model"] else "")),
        ("teacher", settings["teacher"] or "the data's scores, where there are any"),
        ("loss", loss_text({**loss, "temperature": config["training"]["temperature"]})),
        ("versions", versions),
    )
    return ["## How it was trained", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def loss_text(loss: Mapping) -> str:
    """Return the weights of the loss's parts in words."""
    divided = f", temperature {loss['temperature']:g}" if loss.get("temperature") else ""
    distilled = f"{loss['distillation']:g} × distillation ({loss['distillation_loss']}{divided})"
    return f"{loss['listwise']:g} × softmax cross-entropy + {loss['logistic']:g} × logistic + {distilled}"


def _limits(result: Result, config: Mapping) -> list[str]:
    return [
        "## Limits",
        "",
        "- Measured on queries from the same data as the training queries; other texts were not measured.",
        "- Mined negatives were not read by people: some may be relevant.",
        "- Documents of held-out queries may have been seen in training, for other queries.",
        f"- Errors and biases of the data are in the model. {_count_text(result)}",
    ]


def _count_text(result: Result) -> str:
    return f"It was trained on {result.counts['training queries']:,} queries."
