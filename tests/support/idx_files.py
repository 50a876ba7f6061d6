"""Small files in the format of MNIST and FashionMNIST, of random bytes."""

import gzip
from pathlib import Path

import numpy as np


def write_idx(folder: Path, training: int = 100, test: int = 30) -> Path:
    """Write images to learn from and images to test with, each with their labels, and return the folder."""
    folder.mkdir(parents=True)
    draws = np.random.default_rng(1)
    for stem, count in (("train", training), ("t10k", test)):
        for part, shape, most in (("images-idx3", (count, 28, 28), 256), ("labels-idx1", (count,), 10)):
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
            content = head + draws.integers(0, most, shape, np.uint8).tobytes()
            (folder / f"{stem}-{part}-ubyte.gz").write_bytes(gzip.compress(content))
    return folder
