"""Train the reranker that comes with backlight, from MiniLM's encoder, on SQuAD's paragraphs and sentences:

python examples/train_reranker.py DATA [--out FOLDER] [--resume] [--SETTING VALUE ...]

DATA holds squad and question_sentence. FOLDER gets metrics.jsonl, checkpoints and the model. The default settings make
the model of the package, in about an hour on two cores.
"""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

import backlight as torch
from backlight.errors import InputError
from reranker.training import Recipe, Training


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--out", type=Path, default=Path("out/reranker"), metavar="FOLDER")
    options.add_argument("--resume", action="store_true", help="go on from the last checkpoint in FOLDER")
    for setting in fields(Recipe):
        name = "--" + setting.name.replace("_", "-")
        options.add_argument(name, dest=setting.name, type=setting.type, default=setting.default, metavar="VALUE")
    given = vars(options.parse_args())
    data, out, resume = given.pop("data"), given.pop("out"), given.pop("resume")
    try:
        training = Training(Recipe(**given), data, out, lambda line: print(line, flush=True))
        training.start(resume)
        documents = sum(len(collection.documents) for collection in training.collections)
        print(f"{len(training.asked):,} questions over {documents:,} documents, {training.steps:,} steps", flush=True)
        training.train()
    except InputError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    print(f"the model is in {out / 'model'} (backlight {torch.__version__})")


if __name__ == "__main__":
    main()
