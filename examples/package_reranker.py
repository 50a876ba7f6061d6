"""Make the package's model folder of what train_reranker.py, broaden_reranker.py and fuse_reranker.py left:

python examples/package_reranker.py STAGES BREADTH FUSED [--figures FILE ...] [--out FOLDER]
python examples/package_reranker.py --card --figures FILE ... [--out FOLDER]

With --card only the card and its pictures are written, from what the folder says of its training. Each FILE is what a
benchmark of rerankers wrote with --json (reranker_quality, reranker_domains, reranker_traps, everyday); the model card
shows them in this order. STAGES may also be a model folder that such a run became.
"""

import argparse
from pathlib import Path

import backlight as torch
from reranker.package import write_card, write_package
from reranker.problems import in_one_line


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("runs", type=Path, nargs="*", metavar="STAGES BREADTH FUSED")
    options.add_argument("--card", action="store_true", help="write only the card and its pictures")
    options.add_argument("--figures", type=Path, nargs="+", default=[], metavar="FILE")
    options.add_argument("--out", type=Path, default=Path(torch.__file__).parent / "models" / "builtin")
    given = options.parse_args()
    if len(given.runs) != (0 if given.card else 3):
        options.error("give STAGES, BREADTH and FUSED, or --card")
    with in_one_line():
        if given.card:
            write_card(given.out, given.figures)
        else:
            write_package(*given.runs, given.out, given.figures)
    print(f"wrote {given.out}: {sum(file.stat().st_size for file in given.out.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
