"""Indices of rare kinds."""

import numpy as np
import torch
from said import attempt

x = torch.arange(12).view(3, 4)


for kind in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.float32):
    attempt(f"0-d {kind}", lambda: x[torch.tensor(1, dtype=kind)])
    attempt(f"1-d {kind}", lambda: x[torch.tensor([1, 0, 1], dtype=kind)])
    attempt(f"set {kind}", lambda: x.clone().__setitem__(torch.tensor(1, dtype=kind), 0))
    if kind != torch.float32:
        attempt(f"slice {kind}", lambda: x[torch.tensor(1, dtype=kind) :])
    attempt(f"range {kind}", lambda: list(range(5))[torch.tensor(1, dtype=kind)])
attempt("numpy int16", lambda: x[np.int16(1)])
attempt("numpy array int16", lambda: x[np.array([0, 1], np.int16)])
attempt("numpy bool", lambda: x[np.array([True, False, True])])
attempt("list of bools", lambda: x[[True, False, True]])
attempt("True", lambda: x[True].shape)
attempt("text", lambda: x["a"])
attempt("float", lambda: x[1.0])
attempt("too many", lambda: x[0, 0, 0])
attempt("out of range", lambda: x[5])
attempt("list out of range", lambda: x[[5]])
attempt("mask of wrong shape", lambda: x[torch.tensor([True, False])])
attempt("nested", lambda: x[[[0, 1], [1, 0]]].shape)
attempt("take int16", lambda: torch.take(x, torch.tensor([0], dtype=torch.int16)))
attempt("index_select int16", lambda: x.index_select(0, torch.tensor([0], dtype=torch.int16)))
attempt(
    "embedding int16", lambda: torch.nn.functional.embedding(torch.tensor([0], dtype=torch.int16), torch.ones(2, 2))
)
attempt("step", lambda: x[::-1])
