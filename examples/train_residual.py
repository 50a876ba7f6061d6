"""Train the built-in reranker's fourth stage, which adds what MiniLM's cosine lacks:

python examples/train_residual.py BREADTH [--out FOLDER] [--steps N] [--resume]

BREADTH is what broaden_reranker.py left. FOLDER gets the run and, in `model`, the calibrated model. In about an hour on
two cores; with --resume it goes on where it was stopped.
"""

import argparse
from pathlib import Path

import backlight as torch
from reranker.problems import in_one_line
from reranker.residual import Residual, train_residual


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("breadth", type=Path, metavar="BREADTH")
    options.add_argument("--out", type=Path, default=Path("out/residual"), metavar="FOLDER")
    options.add_argument("--steps", type=int, default=Residual.steps, help="of 16 queries each")
    options.add_argument("--resume", action="store_true", help="go on from the last checkpoint in FOLDER")
    given = options.parse_args()
    with in_one_line():
        model = train_residual(given.breadth, given.out, Residual(steps=given.steps), given.resume)
    print(f"the model is in {model} (backlight {torch.__version__})")


if __name__ == "__main__":
    main()
