"""Classes that are allowed by `add_safe_globals` and `safe_globals` load with `weights_only=True`."""

import io
import pickle
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals


class Config:
    def __init__(self, depth):
        self.depth = depth


@dataclass
class Point:
    x: int
    y: int


def stored(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def attempt(value):
    try:
        return torch.load(stored(value), weights_only=True)
    except pickle.UnpicklingError as problem:
        lines = str(problem).split("\n")
        return lines[0][:27]


print(Config in get_safe_globals())
print(attempt({"config": Config(3)}))
add_safe_globals([Config])
print(attempt({"config": Config(3)})["config"].depth, Config in get_safe_globals())
clear_safe_globals()
print(get_safe_globals(), attempt(Config(1)))
with safe_globals([Point]):
    print(attempt({"p": Point(1, 2), "t": torch.ones(2)}))
print(get_safe_globals(), attempt(Point(1, 2)))
add_safe_globals([(Config, "__main__.Config")])
print(attempt(OrderedDict(c=Config(4)))["c"].depth)
clear_safe_globals()
