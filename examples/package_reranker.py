"""Make the package's model folder of what train_reranker.py left in a folder:

python examples/package_reranker.py RUN [--figures FILE] [--out FOLDER]

FILE is what benchmarks/reranker_quality.py DATA --json FILE wrote; the model card shows it.
"""

import argparse
import sys
from pathlib import Path

import backlight as torch
from backlight.errors import InputError
from reranker.package import write_package


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path, metavar="RUN")
    options.add_argument("--figures", type=Path, metavar="FILE")
    options.add_argument("--out", type=Path, default=Path(torch.__file__).parent / "models" / "builtin")
    given = options.parse_args()
    try:
        write_package(given.run, given.out, given.figures)
    except InputError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    print(f"wrote {given.out}: {sum(file.stat().st_size for file in given.out.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
