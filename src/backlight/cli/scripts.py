"""What commands that run a script share: its arguments, and the engine that it runs on."""

import argparse
import importlib.util
from collections.abc import Sequence

from backlight.lens.engines import Engine, engine_named


def add_engine(parser: argparse.ArgumentParser, source: str) -> None:
    """Add which engine a script runs on, and say how it gets its own arguments.

    Args:
        source: what the usage calls the script.
    """
    parser.usage = f"%(prog)s {source} [options] [-- what the script sees in sys.argv]"
    parser.add_argument(
        "--engine",
        choices=("torch", "backlight"),
        help="what `import torch` gives the script; by default PyTorch if it is installed",
    )


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return a command's own arguments, and what follows the first `--`, which are the script's."""
    argv = list(argv)
    end = argv.index("--") if "--" in argv else len(argv)
    return parser.parse_args(argv[:end]), argv[end + 1 :]


def engine_requested(name: str | None) -> Engine:
    """Return the engine that a script is to run on: the one that is named, else PyTorch if it is installed.

    Raises:
        InputError: PyTorch is named and not installed.
    """
    return engine_named(name or ("torch" if importlib.util.find_spec("torch") else "backlight"))
