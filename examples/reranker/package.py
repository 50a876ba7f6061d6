"""From a finished run to the model folder of the package: int8 weights, the split, curves and the model card."""

import json
from pathlib import Path
from string import Template

from backlight.errors import InputError
from backlight.models.checkpoint import WEIGHTS, read_settings
from backlight.models.conversion import export_int8
from backlight.report.charts import Series, curves
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


def write_package(out: Path, folder: Path, figures: Path | None) -> None:
    """Write the model folder.

    Args:
        out: where `train_reranker.py` left its stages.
        folder: where to write.
        figures: what `reranker_quality.py --json` wrote, for the card.

    Raises:
        InputError: a stage is not finished.
    """
    runs = [RunFolder(path) for path in sorted(out.glob("stage-*"))]
    if not runs or not all(_is_finished(run) for run in runs):
        raise InputError(f"{out} must hold finished stages: go on with them by train_reranker.py --resume")
    export_int8(runs[-1].path / "model", folder)
    split = runs[-1].config()["split"]
    _write_json(folder / "held_out.json", {"articles": split["held_out"], "validation": split["validation"]})
    stages = [course_of(run) for run in runs]
    _write_json(folder / "training.json", {"split": split, "stages": stages})
    (folder / "curves.svg").write_text(picture_of(stages), encoding="utf-8")
    (folder / "README.md").write_text(card_of(folder, stages, split, figures), encoding="utf-8")


def _is_finished(run: RunFolder) -> bool:
    return "steps" in run.config() and run.checkpoint_at(run.config()["steps"]).is_file()


def course_of(run: RunFolder) -> dict:
    """Return what a stage was and how it went."""
    config, losses = run.config(), [record for record in run.records() if "loss" in record]
    return {
        "recipe": config["recipe"],
        "questions": config["questions"],
        "steps": config["steps"],
        "minutes": round(sum(one["seconds"] for one in losses) / 60),
        "loss": means_of(losses),
        "validation": [{"step": record["step"], **record["evaluation"]} for record in run.evaluations()],
    }


def means_of(losses: list[dict]) -> list[list[float]]:
    """Return the step and the mean loss of each run of `MEAN_OF` steps."""
    groups = [losses[start : start + MEAN_OF] for start in range(0, len(losses), MEAN_OF)]
    return [[group[-1]["step"], round(sum(one["loss"] for one in group) / len(group), 5)] for group in groups]


def picture_of(stages: list[dict]) -> str:
    """Return the loss and, as points, nDCG@10 on the validation articles, as an SVG that stands alone."""
    losses, validation, before = [], [], 0
    for stage in stages:
        losses += [(before + step, loss) for step, loss in stage["loss"]] + [(before + stage["steps"], None)]
        validation += [(before + one["step"], one["ndcg"]) for one in stage["validation"]]
        before += stage["steps"]
    series = [Series("training loss", losses), Series("validation nDCG@10", validation, "evaluated")]
    drawn = curves(series, "training loss (line), validation nDCG@10 (points)", zero=True)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1) + "\n"


def card_of(folder: Path, stages: list[dict], split: dict, figures: Path | None) -> str:
    """Return the model card."""
    recipe, settings = stages[-1]["recipe"], read_settings(folder / "config.json")
    return Template((HERE / "card.md").read_text(encoding="utf-8")).substitute(
        recipe,
        layers=settings["num_hidden_layers"],
        hidden=settings["hidden_size"],
        positions=settings["max_position_embeddings"],
        megabytes=f"{(folder / WEIGHTS).stat().st_size / 1e6:.1f}",
        figures=figures_of(figures),
        training_articles=len(split["training"]),
        held_out_count=len(split["held_out"]),
        validation_count=len(split["validation"]),
        depth=DEPTH,
        alike=f"{ALIKE:.0%}",
        warm_up=f"{recipe['warm_up']:.0%}",
        minutes=sum(stage["minutes"] for stage in stages),
        stages=stages_of(stages),
        validation=validation_of(stages),
    )


def stages_of(stages: list[dict]) -> str:
    """Return what the stages were, as a table."""
    rows = {
        "questions on paragraphs": lambda one: f"{one['questions']['paragraphs']:,}",
        "questions on sentences": lambda one: f"{one['questions']['sentences']:,}",
        "wrong paragraphs each": lambda one: one["recipe"]["negatives"],
        "wrong sentences each": lambda one: one["recipe"]["sentence_negatives"],
        "times seen": lambda one: one["recipe"]["epochs"],
        "questions a step": lambda one: one["recipe"]["questions"],
        "steps": lambda one: one["steps"],
        "highest rate, encoder and head": lambda one: f"{one['recipe']['rate']}, {one['recipe']['head_rate']}",
        "weight of the imitation": lambda one: one["recipe"]["imitation"],
        "minutes": lambda one: one["minutes"],
    }
    lines = ["| | " + " | ".join(f"stage {number}" for number in range(1, len(stages) + 1)) + " |"]
    lines.append("|---|" + "---|" * len(stages))
    return "\n".join(
        lines + [f"| {name} | " + " | ".join(str(of(stage)) for stage in stages) + " |" for name, of in rows.items()]
    )


def validation_of(stages: list[dict]) -> str:
    """Return the validations as a table."""
    lines = ["| stage | step | validation questions | nDCG@10 | MRR@10 |", "|---|---|---|---|---|"]
    for number, stage in enumerate(stages, 1):
        asked = stage["recipe"]["validation_questions"]
        lines += [
            f"| {number} | {one['step']} | {asked} | {one['ndcg']:.3f} | {one['mrr']:.3f} |"
            for one in stage["validation"]
        ]
    return "\n".join(lines)


def figures_of(file: Path | None) -> str:
    """Return what was measured on the held-out articles, as text."""
    if file is None:
        return "\nNot measured yet."
    sections = read_settings(file)["sections"]
    return "\n".join(line for one in sections for line in ("", f"{one['about']}.", "", *one["lines"]))


def _write_json(file: Path, content: dict) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
