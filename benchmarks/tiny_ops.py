"""How much an op costs when the arrays are small: 20 × tanh(h · w + b), forward and backward, one thread.

The products are element by element, so that the figure is the engine's and not BLAS's. 61 ops a pass; PyTorch eager and
backlight run in turn in one process.

    python benchmarks/tiny_ops.py [--rounds 300] [--check]

`--check` exits with 1 if a bar is missed: at most 0.60 × PyTorch up to 32 × 32.
"""

import argparse
import sys

from measure import interleaved, quartiles, ratio, stopwatch, use_one_thread

use_one_thread()

import numpy as np  # noqa: E402 - after the number of threads is set
import torch  # noqa: E402

import backlight  # noqa: E402

OPS = 61
BAR = 0.60
SHAPES = {"0-d": (), "16": (16,), "32 x 32": (32, 32), "128 x 128": (128, 128)}


def chain(module, shape):
    """Return a function that runs the chain once and returns (forward, forward + backward) in seconds."""
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.normal(size=shape), np.float32) for _ in range(3)]
    x, w, b = (module.tensor(array, requires_grad=True) for array in arrays)
    tanh = module.tanh

    def once():
        x.grad = w.grad = b.grad = None
        start = stopwatch()
        h = x
        for _ in range(20):
            h = tanh(h * w + b)
        y = h.sum()
        middle = stopwatch()
        y.backward()
        return middle - start, stopwatch() - start

    return once


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"20 x tanh(h * w + b), float32, one thread, us an op: median of {options.rounds} (ratio: median, quartiles)")
    print(f"{'':>10}  {'forward':^45}  {'forward + backward':^45}")
    missed = []
    for title, shape in SHAPES.items():
        times = interleaved(
            {"backlight": chain(backlight, shape), "torch": chain(torch, shape)}, options.rounds, warmup=30
        )
        row = f"{title:>10}"
        for part in (0, 1):
            ours, theirs = ([pair[part] for pair in times[name]] for name in ("backlight", "torch"))
            low, middle, high = ratio(ours, theirs)
            mine, other = (quartiles(values)[1] / OPS * 1e6 for values in (ours, theirs))
            row += f"  backlight {mine:6.2f}  torch {other:6.2f}  {middle:.2f} ({low:.2f}-{high:.2f})"
        print(row, flush=True)
        if middle > BAR and np.prod(shape) <= 1024:
            missed.append(f"{title}: {middle:.2f} > {BAR}")
    for line in missed:
        print("missed:", line)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
