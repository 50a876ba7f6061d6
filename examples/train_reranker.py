"""Train the reranker that comes with backlight, from MiniLM's encoder, on SQuAD's paragraphs and sentences:

python examples/train_reranker.py DATA [--out FOLDER] [--resume] [--SETTING VALUE ...]

DATA holds squad and question_sentence. FOLDER gets a folder for each stage, with metrics.jsonl, checkpoints and the
model. With no setting it makes the model of the package, in about an hour on two cores; a setting holds for all stages.
"""

import argparse
from dataclasses import fields, replace
from pathlib import Path

import backlight as torch
from reranker.problems import in_one_line
from reranker.recipe import STAGES, Recipe
from reranker.training import train_stages


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--out", type=Path, default=Path("out/reranker"), metavar="FOLDER")
    options.add_argument("--resume", action="store_true", help="go on from the last checkpoint in FOLDER")
    settings = [setting for setting in fields(Recipe) if setting.name != "stage"]
    for setting in settings:
        name = "--" + setting.name.replace("_", "-")
        options.add_argument(name, dest=setting.name, type=setting.type, metavar="VALUE")
    given = vars(options.parse_args())
    changed = {setting.name: given[setting.name] for setting in settings if given[setting.name] is not None}
    stages = [replace(stage, **changed) for stage in STAGES]
    with in_one_line():
        model = train_stages(stages, given["data"], given["out"], given["resume"], lambda line: print(line, flush=True))
    print(f"the model is in {model} (backlight {torch.__version__})")


if __name__ == "__main__":
    main()
