"""From finished runs to the model folder of the package: int8 weights, what was trained on, curves and the card."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from backlight.errors import InputError
from backlight.models.checkpoint import WEIGHTS, read_settings
from backlight.models.conversion import export_compact
from backlight.report.charts import Series, curves
from backlight.training.reranker.run import RUN
from backlight.training.run_folder import RunFolder
from reranker.breadth import FIGURES, MANIFEST, MEAN
from reranker.reliability import reliability_svg

HERE = Path(__file__).parent
TRAINING = "training.json"
RELIABILITY = """

Calibration of the model's probabilities, on the candidates of each of these collections (thin lines) and of all of them
(points whose size grows with the number of pairs); measured with ${queries} queries of each:

![Reliability diagram](reliability.svg)"""
MEAN_OF = 10  # steps whose loss is one point of the curve
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5d646b }
.rule { stroke: #c4c9ce; stroke-width: 0.6 }
.line { fill: none; stroke-width: 1.8 } .faint { opacity: 0.3 }
.first { stroke: #2f6fb0 } .spot.evaluated { fill: #c4661f } .line.evaluated { stroke: #c4661f }
@media (prefers-color-scheme: dark) { text { fill: #a9b1b8 } .rule { stroke: #4a5157 } }
</style>"""


def write_package(out: Path, breadth: Path, fused: Path, folder: Path, figures: Sequence[Path] = ()) -> None:
    """Write the model folder.

    Args:
        out: where `train_reranker.py` left its stages, or a model folder with the training.json of such stages.
        breadth: where `broaden_reranker.py` left its runs.
        fused: where `fuse_reranker.py` left the model.
        folder: where to write.
        figures: what the benchmarks of rerankers wrote as JSON, for the card.

    Raises:
        InputError: a stage or a run is not finished.
    """
    split, stages = stages_of(out)
    for place, script in ((breadth, "broaden_reranker.py"), (fused, "fuse_reranker.py")):
        if not (place / FIGURES).is_file():
            raise InputError(f"{place} must hold what {script} leaves once it has ended: run it")
    broad = read_settings(breadth / FIGURES)
    broad["courses"] = [run_course_of(RunFolder(breadth / name / RUN)) for name in broad["runs"]]
    manifest = breadth / MANIFEST
    broad["sources"] = read_settings(manifest)["sources"] if manifest.is_file() else []
    last = read_settings(fused / FIGURES)
    export_compact(fused / MEAN, folder)
    _write_json(folder / "held_out.json", {"articles": split["held_out"], "validation": split["validation"]})
    _write_json(folder / TRAINING, {"split": split, "stages": stages, "breadth": broad, "fused": last})
    write_card(folder, figures)


def write_card(folder: Path, figures: Sequence[Path]) -> None:
    """Write a model folder's card and its pictures, from its training.json and from what benchmarks wrote as JSON."""
    trained = read_settings(folder / TRAINING)
    stages, broad = trained["stages"], trained["breadth"]
    measured = [read_settings(file) for file in figures]
    text = figures_of(measured)
    domains = [row for one in measured for row in one.get("collections", ()) if "reliability" in row]
    (folder / "curves.svg").write_text(picture_of([*stages, broad["courses"][0]]), encoding="utf-8")
    if domains:
        drawn = reliability_svg({row["collection"]: row["reliability"] for row in domains})
        (folder / "reliability.svg").write_text(drawn, encoding="utf-8")
        counts = sorted({row["queries"] for row in domains})
        text += Template(RELIABILITY).substitute(queries=" or ".join(map(str, counts)))
    card = card_of(folder, trained["split"], stages, broad, trained["fused"], text)
    (folder / "README.md").write_text(card, encoding="utf-8")


def stages_of(out: Path) -> tuple[dict, list[dict]]:
    """Return the split of the articles, and what the first stages were and how they went."""
    runs = [RunFolder(path) for path in sorted(out.glob("stage-*"))]
    if not runs and (out / TRAINING).is_file():
        found = read_settings(out / TRAINING)
        return found["split"], found["stages"]
    if not runs or not all(_is_finished(run) for run in runs):
        raise InputError(f"{out} must hold finished stages: go on with them by train_reranker.py --resume")
    return runs[-1].config()["split"], [course_of(run) for run in runs]


def _is_finished(run: RunFolder) -> bool:
    return "steps" in run.config() and run.checkpoint_at(run.config()["steps"]).is_file()


def course_of(run: RunFolder) -> dict:
    """Return what a stage was and how it went."""
    config = run.config()
    return {"recipe": config["recipe"], "questions": config["questions"], "steps": config["steps"], **_went(run)}


def run_course_of(run: RunFolder) -> dict:
    """Return what a run of the third stage was and how it went."""
    config = run.config()
    return {"settings": config["settings"], "data": config["data"], "steps": config["training"]["steps"], **_went(run)}


def _went(run: RunFolder) -> dict:
    losses = [record for record in run.records() if "loss" in record]
    return {
        "minutes": round(sum(one["seconds"] for one in losses) / 60),
        "loss": means_of(losses),
        "validation": [{"step": record["step"], **record["evaluation"]} for record in run.evaluations()],
    }


def means_of(losses: list[dict]) -> list[list[float]]:
    """Return the step and the mean loss of each run of `MEAN_OF` steps."""
    groups = [losses[start : start + MEAN_OF] for start in range(0, len(losses), MEAN_OF)]
    return [[group[-1]["step"], round(sum(one["loss"] for one in group) / len(group), 5)] for group in groups]


def picture_of(stages: list[dict]) -> str:
    """Return the loss and, as points, nDCG@10 on the validation queries, as an SVG that stands alone."""
    losses, validation, before = [], [], 0
    for stage in stages:
        losses += [(before + step, loss) for step, loss in stage["loss"]] + [(before + stage["steps"], None)]
        validation += [(before + one["step"], one["ndcg"]) for one in stage["validation"]]
        before += stage["steps"]
    series = [Series("training loss", losses), Series("validation nDCG@10", validation, "evaluated")]
    drawn = curves(series, "training loss (line), validation nDCG@10 (points)", zero=True)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1) + "\n"


def card_of(folder: Path, split: dict, stages: list[dict], broad: dict, last: dict, figures: str) -> str:
    """Return the model card."""
    settings, stage = read_settings(folder / "config.json"), broad["stage"]
    courses, platt = broad["courses"], last["calibration"]["platt"]
    return Template((HERE / "card.md").read_text(encoding="utf-8")).substitute(
        stage | last["fusion"],
        final_weight=f"{last['fusion']['cosine_weight'] * platt['scale']:.1f}",
        final_gate=f"{last['fusion']['gate'] * platt['scale'] + platt['offset']:.1f}",
        final_width=f"{last['fusion']['gate_width'] * platt['scale']:.2f}",
        last_validation=validation_of(last),
        layers=settings["num_hidden_layers"],
        hidden=settings["hidden_size"],
        positions=settings["max_position_embeddings"],
        max_length=courses[0]["settings"]["max_length"],
        megabytes=f"{(folder / WEIGHTS).stat().st_size / 1e6:.1f}",
        figures=figures,
        held_out_count=len(split["held_out"]),
        sources=sources_of(broad["sources"]),
        rows=f"{broad['rows']:,}",
        stages=table_of(stages),
        run_steps=" and ".join(f"{one['steps']:,}" for one in courses),
        run_minutes=" and ".join(str(one["minutes"]) for one in courses),
        run_ndcg=" and ".join(f"{one:.3f}" for one in broad["runs"].values()),
        seeds=" and ".join(map(str, stage["seeds"])),
        threshold=f"{last['threshold']['probability']:.2f}",
        found=f"{last['threshold']['found']:.0%}",
        refused=f"{last['threshold']['refused']:.0%}",
        queries=courses[0]["settings"]["queries"],
        scale=f"{platt['scale']:.2f}",
        offset=f"{platt['offset']:+.2f}",
        validation=validation_of(broad),
        share=f"{stage['held_out']:.0%}",
    )


def sources_of(sources: Sequence[dict]) -> str:
    """Return what the third stage read, as a table."""
    lines = ["| source | kind of text | licence | rows |", "|---|---|---|---|"]
    lines += [f"| {one['name']} | {one['domain']} | {one['licence']} | {one['rows']:,} |" for one in sources]
    return "\n".join(lines)


def table_of(stages: list[dict]) -> str:
    """Return what the first stages were, as a table."""
    rows = {
        "questions on paragraphs": lambda one: f"{one['questions']['paragraphs']:,}",
        "questions on sentences": lambda one: f"{one['questions']['sentences']:,}",
        "negative paragraphs each": lambda one: one["recipe"]["negatives"],
        "negative sentences each": lambda one: one["recipe"]["sentence_negatives"],
        "epochs": lambda one: one["recipe"]["epochs"],
        "questions per step": lambda one: one["recipe"]["questions"],
        "steps": lambda one: one["steps"],
        "peak learning rate, encoder and head": lambda one: f"{one['recipe']['rate']}, {one['recipe']['head_rate']}",
        "distillation weight": lambda one: one["recipe"]["imitation"],
        "minutes": lambda one: one["minutes"],
    }
    lines = ["| | " + " | ".join(f"stage {number}" for number in range(1, len(stages) + 1)) + " |"]
    lines.append("|---|" + "---|" * len(stages))
    return "\n".join(
        lines + [f"| {name} | " + " | ".join(str(of(stage)) for stage in stages) + " |" for name, of in rows.items()]
    )


def validation_of(broad: dict) -> str:
    """Return the mean model's figures on the validation rows as a table."""
    lines = ["| kind of text | queries | BM25 | before | after | gain (95 %) | calibration error |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, one in broad["validation"].items():
        before, after, gain, bm25 = (one[key] for key in ("before", "after", "gain", "bm25"))
        error = broad["calibration"]["after"].get(name)
        cells = [name, str(one["queries"]), *(f"{mean['value']:.3f}" for mean in (bm25, before, after))]
        cells += ["{value:+.3f} ({low:+.3f} to {high:+.3f})".format(**gain), "–" if error is None else f"{error:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def figures_of(measured: Sequence[dict]) -> str:
    """Return what the benchmarks measured, as text."""
    sections = [section for one in measured for section in one["sections"]]
    if not sections:
        return "\nNot measured yet."
    return "\n".join(line for one in sections for line in ("", f"{one['about']}.", "", *one["lines"]))


def _write_json(file: Path, content: dict) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
