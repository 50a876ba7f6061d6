"""uint16, uint32 and uint64: made, converted, printed and stored as in PyTorch, and refused where it has no kernel."""

import io

import numpy as np
import pytest
import torch
from parity import assert_same

import backlight

KINDS = ("uint16", "uint32", "uint64")
MADE = """
torch.tensor([1, 2], dtype=D)                        torch.tensor([1.5, 2.7]).to(D)
torch.tensor([-1], dtype=torch.uint16)               torch.tensor([-70000], dtype=D)
torch.tensor([2**40], dtype=torch.uint32)            torch.full((2,), -1, dtype=D)
torch.full((2,), 2**64 - 1, dtype=torch.uint64)      torch.full((2,), 2**33, dtype=torch.uint16)
torch.tensor([2**64 - 1], dtype=torch.uint64)        torch.tensor([2**64], dtype=torch.uint64)
torch.tensor([1.5], dtype=torch.uint64)              torch.tensor([-3]).to(D)
torch.tensor([2**63], dtype=torch.uint64).sum()      torch.tensor([2**63], dtype=torch.uint64).view(torch.int64)
torch.empty(0, dtype=D)                              torch.zeros(2, dtype=D).new_ones(2)
torch.arange(5, dtype=D)                             torch.eye(2, dtype=D)
torch.linspace(0, 5, 3, dtype=D)                     torch.logspace(0, 1, 3, dtype=D)
torch.randperm(3, dtype=D)                           torch.tril_indices(2, 2, dtype=D)
torch.empty(2, dtype=D).random_()                    torch.empty(2, dtype=D).uniform_()
torch.randint(-3, 5, (2,), dtype=D)                  torch.empty(2, dtype=D).geometric_(0.5)
D.to_complex()                                       torch.int32.to_complex()
A.tolist()                                           A.type()
A.view(torch.uint8)                                  A.requires_grad_()
A[0].item()                                          A.numpy()
torch.set_default_dtype(D)                           hasattr(A, 'uint16')
"""
COMPUTED = """
A + 1  A + 1.5  A + torch.ones(2)  A + torch.tensor([1, 2])  A * 3  1 - A  A - A  -A  ~A  A >> 1  A & 1  A | A
A == A  A != 1  A < 1  A >= A  A // 2  A % 2  A / 2  A ** 2  A.sqrt()  A.exp()  A.sum()  A.prod()  A.mean()
A.std()  A.max()  A.max(0)  A.argmax()  A.topk(1)  A.sort()  A.unique()  A.cumsum(0)  A.cumsum(0, dtype=D)
A.any()  A.all()  A.sum(dtype=D)  A.nonzero()  A.count_nonzero()  A.clamp(1, 2)  A.abs()  A.sign()  A.flip(0)
A.roll(1)  A.repeat(2)  A.index_select(0, torch.tensor([0]))  A[torch.tensor([1])]  A[A == 1]  torch.ones(3)[A]
A.gather(0, torch.tensor([0]))  A.fill_(9)  A.zero_()  A.add_(1)  A.masked_fill(A == 1, 5)  A.where(A == 1, A)
torch.cat([A, A])  torch.stack([A, A])  torch.cat([A, torch.ones(1)])  A.bool()  A.logical_not()  A.isnan()
torch.isin(A, 1)  A.view(1, 2).tril()  A.view(1, 2) @ A  torch.dot(A, A)  torch.bincount(A)
A.index_put((torch.tensor([0]),), A[:1])  A.scatter(0, torch.tensor([0]), 5)  torch.result_type(A, 1.5)
torch.result_type(A, torch.tensor(1))  torch.result_type(A, 1j)  range(5)[A[1]]  int(A[0])  bool(A[1])  A.exp_()
"""


def expressions(text: str) -> list[str]:
    """Return the expressions of a table: its entries are at least two spaces apart."""
    return [one.strip() for line in text.strip().splitlines() for one in line.split("  ") if one.strip()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [MADE, COMPUTED], ids=["made", "computed"])
def test_results_and_errors_are_pytorchs(table, kind):
    for expression in expressions(table):
        named = expression.replace("A", f"torch.tensor([1, 2], dtype=torch.{kind})").replace("D", f"torch.{kind}")
        assert_same(named)


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_arrays_are_exchanged_with_pytorch(kind):
    theirs = torch.tensor([1, 2, 60000], dtype=getattr(torch, kind))
    ours = backlight.tensor([1, 2, 60000], dtype=getattr(backlight, kind))
    written = io.BytesIO()
    torch.save({"all": theirs, "tail": theirs[1:]}, written)
    written.seek(0)
    read = backlight.load(written)
    assert read["all"].dtype is ours.dtype
    read["all"][1] = 7
    assert read["tail"].tolist() == [7, 60000], "views share memory"
    for value in (ours, {"whole": slice(1), "x": ours}):
        written = io.BytesIO()
        backlight.save(value, written)
        written.seek(0)
        found = torch.load(written, weights_only=value is ours)
        assert torch.equal(found if value is ours else found["x"], theirs)
    assert np.array_equal(backlight.from_numpy(theirs.numpy()).numpy(), theirs.numpy())
    assert torch.equal(torch.from_dlpack(ours), theirs)
