"""Make one model of the built-in reranker's third stage and MiniLM's cosine:

python examples/fuse_reranker.py BREADTH [--out FOLDER] [--cosine-weight W] [--gate G]

BREADTH is what broaden_reranker.py left. FOLDER gets the calibrated model, in `model`, and its figures on the
validation rows; that takes minutes.
"""

import argparse
from pathlib import Path

import backlight as torch
from reranker.fusion import Fusion, fuse
from reranker.problems import in_one_line


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("breadth", type=Path, metavar="BREADTH")
    options.add_argument("--out", type=Path, default=Path("out/fused"), metavar="FOLDER")
    options.add_argument("--cosine-weight", type=float, default=Fusion.cosine_weight, help="of the cosine, in logits")
    options.add_argument("--gate", type=float, default=Fusion.gate, help="the logit at which half of the cosine counts")
    given = options.parse_args()
    with in_one_line():
        model = fuse(given.breadth, given.out, Fusion(cosine_weight=given.cosine_weight, gate=given.gate))
    print(f"the model is in {model} (backlight {torch.__version__})")


if __name__ == "__main__":
    main()
