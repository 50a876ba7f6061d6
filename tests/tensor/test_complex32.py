"""complex32: made, converted, printed, promoted and stored as in PyTorch, and refused where its CPU has no kernel."""

import io

import pytest
import torch
from parity import assert_same

import backlight

MADE = """
torch.tensor([1 + 2j], dtype=torch.chalf)                torch.zeros(2, dtype=torch.complex32)
torch.full((2,), 1j, dtype=torch.chalf)                  torch.empty(0, dtype=torch.chalf)
torch.complex(H, H)                                      torch.polar(H, H)
torch.view_as_complex(torch.ones(3, 2).half())           torch.float16.to_complex()
torch.ones(2).half() * 1j                                torch.tensor([1.5, 2]).chalf()
torch.arange(3, dtype=torch.chalf)                       torch.eye(2, dtype=torch.chalf)
torch.linspace(0, 1, 3, dtype=torch.chalf)               torch.finfo(torch.chalf)
torch.complex32.itemsize                                 torch.complex32.to_real()
A.type()                                                 hasattr(torch, "ComplexHalfStorage")
A.tolist()                                               A[0, 0].item()
A.numpy()                                                A.to(torch.half)
A.cfloat()                                               A.to(torch.complex128)
A.int()                                                  A.bool()
A.real                                                   A.imag
A.real.stride()                                          torch.view_as_real(A)
A.mT.real                                                A.conj().imag
A.untyped_storage().nbytes()                             torch.view_as_real(A)._base is not None
torch.empty_like(A, dtype=torch.half).dtype              A.clone().fill_(1j)
torch.promote_types(torch.chalf, torch.bfloat16)         torch.promote_types(torch.chalf, torch.half)
torch.promote_types(torch.chalf, torch.float64)          torch.promote_types(torch.chalf, torch.complex64)
torch.can_cast(torch.chalf, torch.half)                  torch.result_type(A, 1.5)
torch.result_type(H, 1j)                                 torch.result_type(torch.ones((), dtype=torch.chalf), 1.5)
torch.manual_seed(0) is None or torch.randn(3, dtype=torch.chalf)
torch.manual_seed(0) is None or torch.rand(3, dtype=torch.chalf)
torch.manual_seed(0) is None or A.clone().uniform_()
"""
COMPUTED = """
A + A  A - 1j  A * A  A * 2.5  2 - A  -A  A.abs()  A.sgn()  A == A  A != 1  A.conj()  A.isnan()  A.isfinite()
A.isinf()  A.isreal()  A.var()  A.std(0)  A.norm()  A.count_nonzero()  A.any()  A.all()  A.tril()  A.flip(0)
A.roll(1)  A.repeat(2, 1)  A.t()  A.unfold(0, 2, 1)  A.diagonal()  A[torch.tensor([1, 0])]  A[A == A]
A.index_add(0, torch.tensor([0, 0]), A)  A.index_select(1, torch.tensor([1]))  A.masked_fill(A == A, 2j)
A.index_put((torch.tensor([0, 0]),), A, accumulate=True)  torch.where(A == A, A, -A)  torch.cat([A, A])
torch.stack([A, A])  torch.cat([A, A.cfloat()])  torch.addcmul(A, A, A, value=2)  torch.block_diag(A, A)
A.nonzero()  A + H.view(1, 2)  A + torch.ones(2, 2)  torch.isclose(A, A)  A.clone().mul_(2)  A.cumsum(0)
A / 2  A @ A  A.sum()  A.mean()  A.prod()  A.exp()  A.sin()  A.sqrt()  A ** 2  A ** A  A.reciprocal()  A.angle()
A < A  A.max()  A.gather(0, torch.tensor([[0]]))  A.take(torch.tensor([0]))  A.logical_not()  torch.dot(A[0], A[0])
torch.fft.fft(A)  torch.linalg.det(A)  torch.linalg.inv(A)  torch.linalg.svd(A)  torch.equal(A, A)  A.unique()
A.trace()  torch.lerp(A, A, 0.5)  A.sigmoid()  A.logsumexp(0)  A.sum(dtype=torch.complex64)
"""
A, H = "torch.tensor([[4 + 1j, 1 - 2j], [2 + 0.5j, 3 + 1j]]).to(torch.complex32)", "torch.tensor([1.5, 2.0]).half()"


@pytest.mark.parametrize("table", [MADE, COMPUTED], ids=["made", "computed"])
def test_results_and_errors_are_pytorchs(table):
    for line in table.strip().splitlines():
        for expression in filter(None, map(str.strip, line.split("  "))):
            words = expression.replace("A", "(A)") if expression.startswith("A") else expression
            assert_same(words.replace("A", A).replace("H", H))


def test_gradients_are_pytorchs():
    found = []
    for t in (torch, backlight):
        x = t.tensor([1 + 2j, 3 - 1j]).to(t.complex32).requires_grad_()
        t.view_as_real(x * x + x).sum().backward()
        found.append(str(x.grad))
    assert found[0] == found[1]


def test_files_and_memory_are_exchanged_with_pytorch():
    theirs = torch.tensor([1 + 2j, 3 - 1j]).to(torch.complex32)
    written = io.BytesIO()
    torch.save({"all": theirs, "tail": theirs[1:]}, written)
    written.seek(0)
    read = backlight.load(written)
    read["all"][1] = 7j
    assert read["tail"].tolist() == [7j], "views share memory"
    written = io.BytesIO()
    backlight.save(backlight.tensor([1 + 2j, 3 - 1j]).chalf(), written)
    written.seek(0)
    assert torch.load(written).tolist() == theirs.tolist()
    assert torch.from_dlpack(backlight.from_dlpack(theirs)).tolist() == theirs.tolist()
