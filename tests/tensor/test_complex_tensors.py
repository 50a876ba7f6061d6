"""Complex tensors: made, printed, converted, shared, written to and refused as in PyTorch."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from parity import assert_same, lines

import backlight
from backlight.system import user_warnings

MAKING = lines(
    """
    torch.tensor([1 + 2j, 3 - 1j])
    torch.tensor(1j)
    torch.tensor([1, 2.0, 3j])
    torch.tensor([True, 1j])
    torch.tensor([1, 2], dtype=torch.cfloat)
    torch.tensor([1j], dtype=torch.complex128)
    torch.tensor([1j], dtype=torch.float32)
    torch.tensor(np.array([1j], np.complex64))
    torch.from_numpy(np.array([1j, 2]))
    torch.as_tensor(np.complex64(1j))
    torch.zeros(2, dtype=torch.cfloat), torch.ones(2, dtype=torch.cdouble), torch.full((2,), 1 + 2j)
    torch.full((2,), 1, dtype=torch.cfloat), torch.eye(2, dtype=torch.cfloat), torch.zeros_like(torch.tensor([1j]))
    torch.full((2,), 1j, dtype=torch.float32)
    torch.arange(3, dtype=torch.cfloat)
    torch.linspace(0, 1, 3, dtype=torch.cfloat)
    torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    torch.complex(torch.ones(2, 1, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    torch.complex(torch.ones(1), torch.ones(1).double())
    torch.complex(torch.ones(1), torch.ones(1).long())
    torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    torch.polar(torch.ones(1).long(), torch.ones(1).long())
    torch.ones(2).cfloat(), torch.ones(2).cdouble(), torch.ones(2).to(torch.complex64), torch.ones(2).type(torch.cfloat)
    torch.tensor([1 + 2j]).to(torch.float32), torch.tensor([1 + 2j]).long(), torch.tensor([1j, 0]).bool()
    torch.tensor([1j]).new_zeros(2), torch.tensor([1j]).new_tensor([1, 2]), torch.tensor([1j]).new_full((2,), 3)
    torch.tensor([1j, 2]).view(torch.float32), torch.zeros(4).view(torch.cfloat)
    torch.tensor(1 + 2j).item(), torch.tensor([1j, 2]).tolist(), complex(torch.tensor(1 + 1j))
    float(torch.tensor(1j))
    int(torch.tensor(1j))
    float(torch.tensor(1 + 0j)), bool(torch.tensor(1j)), bool(torch.tensor(0j))
    1j in torch.tensor([1j]), [one for one in torch.tensor([1j, 2])]
    f"{torch.tensor(1.5 + 2j):.2f}"
    """
)


@pytest.mark.parametrize("expression", MAKING)
def test_complex_tensors_are_made_and_converted_as_pytorchs(expression):
    assert_same(expression.strip())


QUERIES = lines(
    """
    torch.is_complex(torch.tensor(1j)), torch.tensor(1.0).is_complex(), torch.is_floating_point(torch.tensor(1j))
    torch.cfloat.is_complex, torch.cfloat.is_floating_point, torch.cfloat.is_signed, torch.cdouble.itemsize
    str(torch.cfloat.to_real()), str(torch.float64.to_complex()), str(torch.cdouble.to_real()), torch.tensor(1j).type()
    torch.finfo(torch.cfloat), torch.finfo(torch.complex128).max
    torch.isreal(torch.tensor([1j, 2])), torch.isreal(torch.ones(2))
    torch.isnan(torch.tensor([complex(float("nan"), 1)])), torch.isfinite(torch.tensor([complex(1, float("inf"))]))
    torch.tensor([1j]) == torch.tensor([1j]), torch.tensor([1j]) == 1j, torch.tensor([1j]) != torch.ones(1)
    torch.equal(torch.tensor([1j]), torch.tensor([1j])), torch.allclose(torch.tensor([1j]), torch.tensor([1j + 1e-9]))
    torch.tensor([3 + 4j]).abs(), torch.sgn(torch.tensor([3 + 4j, 0])), torch.tensor([1j, -1.0]).angle()
    torch.tensor([1j, 2]).sum(), torch.tensor([1j, 2]).mean(), torch.tensor([1j, 2]).prod()
    torch.tensor([1j, 2]).cumsum(0), torch.tensor([1j, 2]).cumprod(0)
    torch.ones(2).sum(dtype=torch.cfloat), torch.count_nonzero(torch.tensor([1j, 0])), torch.tensor([0j, 1]).any()
    torch.real(torch.ones(2)), torch.ones(2).real, torch.tensor([1 + 2j]).real, torch.tensor([1 + 2j]).imag
    torch.imag(torch.ones(2))
    torch.ones(2).imag
    torch.view_as_real(torch.tensor([1 + 2j, 3])), torch.view_as_complex(torch.ones(3, 2))
    torch.view_as_real(torch.ones(2))
    torch.view_as_complex(torch.zeros(3))
    torch.view_as_complex(torch.zeros(2, dtype=torch.int64))
    torch.view_as_complex(torch.zeros(2, 2).t())
    torch.view_as_complex(torch.zeros(3, 3)[:, :2])
    torch.view_as_complex(torch.tensor(1.0))
    torch.view_as_real_copy(torch.tensor([1j])), torch.view_as_complex_copy(torch.ones(2))
    torch.tensor([1j]).conj().is_conj(), torch.tensor([1j]).is_conj(), torch.ones(1).conj().is_conj()
    torch.tensor([1j]).conj().conj().is_conj(), torch.tensor([[1j]]).mH.is_conj()
    torch.tensor([1j]).conj_physical().is_conj(), torch.is_conj(torch.tensor([1j]).conj())
    torch.tensor([1j]).conj(), torch.tensor([1j]).conj().resolve_conj(), torch.tensor([[1j, 2], [3, 4j]]).H
    torch.tensor([1j]).conj().numpy()
    torch.view_as_real(torch.tensor([1j]).conj())
    torch.tensor([1j]).conj_physical_(), torch.ones(1).conj_physical()
    torch.where(torch.tensor([True, False]), 1j, 2.0), torch.where(torch.tensor([True]), torch.ones(1), 1j)
    torch.cat([torch.ones(1), torch.tensor([1j])]), torch.stack([torch.tensor(1j), torch.tensor(2 + 0j)])
    torch.add(torch.ones(1), torch.ones(1), alpha=1j)
    torch.add(torch.tensor([1j]), torch.ones(1), alpha=1j), 1j - torch.ones(2), 1j / torch.ones(2)
    torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.cfloat)
    torch.tensor([1.0]).add_(1j)
    torch.abs(torch.tensor([3 + 4j]), out=torch.zeros(1))
    torch.add(torch.tensor([1j]), 1, out=torch.zeros(1))
    torch.nn.functional.mse_loss(torch.tensor([1j]), torch.tensor([1j]))
    torch.nn.functional.l1_loss(torch.tensor([1j]), torch.tensor([2j]))
    torch.vmap(lambda x: (x * 1j).abs())(torch.tensor([1j, 2]))
    torch.func.jacrev(lambda x: x.abs())(torch.tensor([1j]))
    torch.func.jacfwd(lambda x: x.abs())(torch.tensor([1j]))
    torch.result_type(torch.ones(1, dtype=torch.float64), 1j), torch.result_type(torch.ones(1, dtype=torch.int64), 1j)
    torch.relu(torch.tensor([1j]))
    torch.tensor([1j]) < 1
    torch.tensor([1j]).max()
    torch.tensor([1j]).clamp(0, 1)
    torch.tensor([1j]).floor()
    torch.tensor([1j]) % 2
    torch.tensor([1j]) // 2
    torch.tensor([1j]).argmax()
    torch.nn.functional.gelu(torch.tensor([1j]))
    torch.nn.functional.softmax(torch.tensor([1j]), 0)
    torch.nn.functional.dropout(torch.tensor([1j]), 0.5)
    """
)


@pytest.mark.parametrize("expression", QUERIES)
def test_complex_numbers_are_computed_or_refused_as_in_pytorch(expression):
    assert_same(expression.strip())


VALUES = [
    [1 + 2j, 3 - 1j],
    1 + 2j,
    [[1e10 + 1j, 2.5], [complex("nan"), 1j]],
    (np.arange(120) * (0.37 - 0.21j)).reshape(3, 40).tolist(),
    (np.arange(2400) * (0.37 - 1e-5j)).reshape(60, 40).tolist(),
    [1e-5 - 1e5j, 3],
    [complex(1, float("inf")), complex(float("-inf"), -0.0)],
    [],
    [[complex(0, float("nan"))]],
    0j,
]


@pytest.mark.parametrize("values", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_printed_as_pytorch_prints(values, kind):
    ours = backlight.tensor(values, dtype=getattr(backlight, kind))
    theirs = torch.tensor(values, dtype=getattr(torch, kind))
    assert repr(ours) == repr(theirs)
    assert repr(ours.requires_grad_() * 2) == repr(theirs.requires_grad_() * 2)


@pytest.mark.parametrize(
    "draw",
    [
        lambda t: t.randn(3, dtype=t.cfloat),
        lambda t: t.randn(20, dtype=t.cdouble),
        lambda t: t.rand(2, 3, dtype=t.cfloat),
        lambda t: t.randn_like(t.zeros(2, 5, dtype=t.cfloat)),
        lambda t: t.rand_like(t.zeros(3, 2, dtype=t.cdouble).t()),
        lambda t: t.zeros(4, dtype=t.cfloat).normal_(1, 2),
        lambda t: t.zeros(4, dtype=t.cfloat).uniform_(-1, 1),
    ],
)
def test_complex_numbers_are_drawn_as_pytorch_draws_them(draw):
    torch.manual_seed(3)
    backlight.manual_seed(3)
    np.testing.assert_allclose(draw(backlight).numpy(), draw(torch).numpy(), rtol=1e-6)


def test_views_of_the_parts_share_memory_and_version():
    x = backlight.tensor([1 + 2j, 3 - 1j])
    x.real.mul_(2)
    backlight.view_as_real(x)[:, 1] = 7
    x.imag[0] = 5
    assert x.tolist() == [2 + 5j, 6 + 7j]
    assert x._version == x.imag._version == 3
    pairs = backlight.zeros(2, 2)
    backlight.view_as_complex(pairs).add_(1 + 2j)
    assert pairs.tolist() == [[1, 2], [1, 2]]


def test_parts_can_be_assigned():
    x = backlight.tensor([1 + 2j, 3 - 1j])
    x.real = backlight.tensor([5.0, 6.0])
    x.imag = 0
    x[1] = 4j
    assert x.tolist() == [5, 4j]


def test_memory_is_shared_with_numpy_and_by_dlpack():
    array = np.array([1j, 2])
    shared = backlight.from_numpy(array)
    array[0] = 5
    assert shared.tolist() == [5, 2]
    assert shared.numpy().dtype == np.complex128
    taken = backlight.from_dlpack(shared)
    taken[1] = 9j
    assert array[1] == 9j
    assert torch.from_dlpack(backlight.tensor([1j])).tolist() == [1j]


def test_complex_tensors_are_saved_loaded_copied_and_pickled():
    made = {
        "a": backlight.tensor([1j, 2], requires_grad=True),
        "b": backlight.tensor([[1 + 1j]], dtype=backlight.cdouble),
    }
    buffer = io.BytesIO()
    backlight.save(made, buffer)
    buffer.seek(0)
    loaded = backlight.load(buffer)
    buffer.seek(0)
    theirs = torch.load(buffer)
    for other in (loaded, theirs, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert [other[name].tolist() for name in made] == [made[name].tolist() for name in made]
        assert [str(other[name].dtype) for name in made] == ["torch.complex64", "torch.complex128"]


def test_discarding_imaginary_parts_warns(monkeypatch):
    monkeypatch.setattr(user_warnings, "_always", True)
    x = backlight.tensor([1 + 2j])
    for discard in (lambda: x.to(backlight.float32), lambda: x.long(), lambda: backlight.ones(1).copy_(x)):
        with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
            assert discard().tolist() == [1]


def test_the_default_dtype_chooses_the_complex_one():
    backlight.set_default_dtype(backlight.float64)
    try:
        assert backlight.tensor(1j).dtype is backlight.complex128
        assert repr(backlight.tensor([1j])) == "tensor([0.+1.j])"
        assert (backlight.ones(2, dtype=backlight.int64) * 1j).dtype is backlight.complex128
    finally:
        backlight.set_default_dtype(backlight.float32)
