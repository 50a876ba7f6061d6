"""Train the built-in reranker's third stage, on many kinds of text:

python examples/broaden_reranker.py PAIRS --from MODEL --out FOLDER [--epochs N] [--seeds N ...] [--leave-out NAME ...]
    [--resume]

PAIRS is what reranker_pairs.py wrote, MODEL what train_reranker.py did. FOLDER gets the runs and, in `model`, the mean
of their weights. In about an hour on two cores; with --resume it goes on where it was stopped. To measure how well it
does on a kind of text that it never saw, leave one out, and ask benchmarks/reranker_domains.py --all for that one.
"""

import argparse
from pathlib import Path

import backlight as torch
from reranker.breadth import Breadth, train_breadth
from reranker.problems import in_one_line


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("pairs", type=Path, metavar="PAIRS")
    options.add_argument("--from", dest="start", required=True, metavar="MODEL")
    options.add_argument("--out", type=Path, default=Path("out/breadth"), metavar="FOLDER")
    options.add_argument("--epochs", type=float, default=Breadth.epochs, help="how often a run sees each query")
    options.add_argument("--seeds", type=int, nargs="+", default=Breadth.seeds, help="one for each run")
    options.add_argument("--leave-out", nargs="+", default=[], metavar="NAME", help="domains or sources not read")
    options.add_argument("--resume", action="store_true", help="go on from the last checkpoints in FOLDER")
    given = options.parse_args()
    stage = Breadth(tuple(given.seeds), epochs=given.epochs, left_out=tuple(given.leave_out))
    with in_one_line():
        model = train_breadth(given.pairs, given.start, given.out, stage, given.resume)
    print(f"the model is in {model} (backlight {torch.__version__})")


if __name__ == "__main__":
    main()
