"""Checkpoints with plain objects beside tensors: argparse namespaces, sets, dates, enums."""

import argparse
import datetime
import enum
import io
import pathlib

import numpy as np
import torch
from said import error


class Mode(enum.Enum):
    FAST = 1


def there_and_back(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


checkpoint = {
    "epoch": 3,
    "args": argparse.Namespace(lr=0.1, name="run"),
    "when": datetime.date(2024, 1, 2),
    "mode": Mode.FAST,
    "seen": {1, 2},
    "array": np.arange(3),
    "path": pathlib.PurePosixPath("a/b"),
    "weights": {"w": torch.arange(3.0)},
    "cycle": [],
}
back = there_and_back(checkpoint, weights_only=False)
print({key: str(value) for key, value in back.items() if key != "seen"}, sorted(back["seen"]))
tied = torch.zeros(3)
back = there_and_back({"a": tied, "b": tied[1:], "args": argparse.Namespace(t=tied)}, weights_only=False)
back["a"][1] = 5
print(back["b"].tolist(), back["args"].t.tolist())
for value in ({"a": argparse.Namespace(x=1)}, Mode.FAST, datetime.date(2024, 1, 2)):
    try:
        print(there_and_back(value))
    except Exception as problem:
        print(error(problem))
