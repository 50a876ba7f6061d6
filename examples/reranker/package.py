"""From a finished run to the model folder of the package: int8 weights, the split, curves and the model card."""

import json
from pathlib import Path
from string import Template

from backlight.errors import InputError
from backlight.models.checkpoint import read_json
from backlight.models.conversion import export_int8
from backlight.training.charts import Series, curves
from backlight.training.run_folder import RunFolder
from reranker.negatives import ALIKE, DEPTH

HERE = Path(__file__).parent
MEAN_OF = 10  # steps whose loss is one point of the curve
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5d646b }
.rule { stroke: #c4c9ce; stroke-width: 0.6 }
.line { fill: none; stroke-width: 1.8 } .faint { opacity: 0.3 }
.first { stroke: #2f6fb0 } .spot.evaluated { fill: #c4661f } .line.evaluated { stroke: #c4661f }
@media (prefers-color-scheme: dark) { text { fill: #a9b1b8 } .rule { stroke: #4a5157 } }
</style>"""


def write_package(run: RunFolder, out: Path, figures: Path | None) -> None:
    """Write the model folder.

    Args:
        run: where `train_reranker.py` left its model.
        out: the folder to write.
        figures: what `reranker_quality.py --json` wrote, for the card.

    Raises:
        InputError: the run is not finished.
    """
    config, records = run.config(), run.records()
    losses = [record for record in records if "loss" in record]
    if not losses or losses[-1]["step"] != config["steps"]:
        raise InputError(f"{run.path} must hold a finished run: go on with it by train_reranker.py --resume")
    export_int8(run.path / "model", out)
    split = config["split"]
    _write_json(out / "held_out.json", {"articles": split["held_out"], "validation": split["validation"]})
    evaluations = [{"step": record["step"], **record["evaluation"]} for record in run.evaluations()]
    course = {**config, "loss": means_of(losses), "validation": evaluations}
    _write_json(out / "training.json", course)
    (out / "curves.svg").write_text(picture_of(course), encoding="utf-8")
    (out / "README.md").write_text(card_of(out, course, losses, figures), encoding="utf-8")


def means_of(losses: list[dict]) -> list[list[float]]:
    """Return the step and the mean loss of each run of `MEAN_OF` steps."""
    groups = [losses[start : start + MEAN_OF] for start in range(0, len(losses), MEAN_OF)]
    return [[group[-1]["step"], round(sum(one["loss"] for one in group) / len(group), 5)] for group in groups]


def picture_of(course: dict) -> str:
    """Return the loss and, as points, nDCG@10 on the validation articles, as an SVG that stands alone."""
    validation = [(one["step"], one["ndcg"]) for one in course["validation"]]
    series = [
        Series("training loss", [tuple(point) for point in course["loss"]]),
        Series("validation nDCG@10", validation, "evaluated"),
    ]
    drawn = curves(series, "training loss (line), validation nDCG@10 (points)", zero=True)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1) + "\n"


def card_of(out: Path, course: dict, losses: list[dict], figures: Path | None) -> str:
    """Return the model card."""
    recipe, split, settings = course["recipe"], course["split"], read_json(out / "config.json")
    seen, epochs = course["questions"], recipe["epochs"]
    return Template((HERE / "card.md").read_text(encoding="utf-8")).substitute(
        recipe,
        layers=settings["num_hidden_layers"],
        hidden=settings["hidden_size"],
        positions=settings["max_position_embeddings"],
        megabytes=f"{sum(file.stat().st_size for file in out.iterdir()) / 1e6:.1f}",
        figures=figures_of(figures),
        questions=f"{seen['paragraphs'] + seen['sentences']:,}",
        paragraph_questions=f"{seen['paragraphs']:,}",
        sentence_questions=f"{seen['sentences']:,}",
        all_sentence_questions=f"{seen['all sentences']:,}",
        training_articles=len(split["training"]),
        held_out_count=len(split["held_out"]),
        validation_count=len(split["validation"]),
        depth=DEPTH,
        alike=f"{ALIKE:.0%}",
        epochs_text="Each question was seen once" if epochs == 1 else f"Each question was seen {epochs} times",
        step_questions=recipe["questions"],
        warm_up=f"{recipe['warm_up']:.0%}",
        steps=course["steps"],
        thousand_pairs=round(sum(one["pairs"] for one in losses) / 1000),
        minutes=round(sum(one["seconds"] for one in losses) / 60),
        validation=validation_of(course["validation"]),
    )


def validation_of(evaluations: list[dict]) -> str:
    """Return the validations as a table."""
    steps = " | ".join(str(one["step"]) for one in evaluations)
    rows = [f"| step | {steps} |", "|---|" + "---|" * len(evaluations)]
    for name, key in (("nDCG@10", "ndcg"), ("MRR@10", "mrr")):
        rows.append(f"| validation {name} | " + " | ".join(f"{one[key]:.3f}" for one in evaluations) + " |")
    return "\n".join(rows)


def figures_of(file: Path | None) -> str:
    """Return what was measured on the held-out articles, as text."""
    if file is None:
        return "\nNot measured yet."
    sections = read_json(file)["sections"]
    return "\n".join(line for one in sections for line in ("", f"{one['about']}.", "", *one["lines"]))


def _write_json(file: Path, content: dict) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
