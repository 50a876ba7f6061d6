"""Strides of results and of `.grad`: PyTorch's, for inputs in channels last and with dims in other orders."""

import re

import pytest
import torch
from opinfo_run import entries, full_name
from opinfo_strides import differences

import backlight

WITH_A_REASON = {
    "LAPACK's column order, which NumPy turns into rows": r"(linalg\.)?(cholesky.*|lu|lu_(factor|solve).*|qr|eigh?|svd"
    r"|householder_product|lstsq.*|inv|inv_ex|solve.*|tensorinv)|ormqr|triangular_solve|(svd|pca)_lowrank",
    "the order in which MKL returns the dims transformed": r"fft\..*(fft|fft2|fftn)|stft",
    "not in backlight": r"sparse\.(sampled_addmm|mm\.reduce)|torch\.ops\.aten\._(flash|efficient)_.*|chalf",
    "parts of one copy in PyTorch, copies here": r"unsafe_(chunk|split)",
    "the strides of a dim of size 1 in front of one row": r"nn\.functional\.rms_norm",
    "takes complex numbers only": "view_as_(complex|real)|imag|istft",
}
NAMED = {full_name(entry): entry for entry in entries()}
COMPARED = [name for name in NAMED if not any(re.fullmatch(pattern, name) for pattern in WITH_A_REASON.values())]


@pytest.mark.parametrize("name", COMPARED)
def test_results_have_the_strides_of_pytorch(name):
    assert differences(NAMED[name]) == []


ARRANGED = {
    "a column of a transposed row": lambda t: numbers(t, 1, 4).t(),
    "a row with the stride of a longer one": lambda t: numbers(t, 4).as_strided((1, 4), (7, 1)),
    "an odd stride in the middle": lambda t: numbers(t, 3, 4).as_strided((3, 1, 4), (4, 77, 1)),
    "odd strides at both ends": lambda t: numbers(t, 3, 4).as_strided((1, 3, 4, 1), (5, 4, 1, 9)),
    "every other column, transposed": lambda t: numbers(t, 3, 4)[:, ::2].t(),
    "one row, expanded": lambda t: numbers(t, 4).expand(2, 4),
    "planes in channels last": lambda t: numbers(t, 2, 3, 2, 2).to(memory_format=t.channels_last),
    "volumes in channels last": lambda t: numbers(t, 2, 3, 2, 2, 2).to(memory_format=t.channels_last_3d),
}
CALLS = {
    "rolled by one slice": lambda t, x: x.roll(1, 0),
    "rolled in two dims": lambda t, x: x.roll((1, 1), (0, -1)),
    "rolled as one row": lambda t, x: x.roll(1),
    "not padded": lambda t, x: t.nn.functional.pad(x, (0, 0)),
    "cut by a negative padding": lambda t, x: t.nn.functional.pad(x, (0, -1) if x.shape[-1] > 1 else (0, 0)),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "None in an index": lambda t, x: x[..., 0:1, None, :],
    "unsqueeze in place": lambda t, x: (x * 1).unsqueeze_(0),
    "promoted by a complex number": lambda t, x: x * 1j,
    "promoted by a float": lambda t, x: x.int() * 1.5,
    "promoted by a tensor": lambda t, x: x.float() + x,
    "compared in another dtype": lambda t, x: x.int() > 0.5,
    "hypot": lambda t, x: t.hypot(x, x),
    "out=": lambda t, x: t.add(x, x, out=t.empty(0, dtype=x.dtype)),
}


def numbers(t, *shape):
    return t.arange(float(torch.Size(shape).numel()), dtype=t.float64).reshape(shape)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("arranged", ARRANGED)
def test_dims_of_size_1_and_converted_operands_have_the_strides_of_pytorch(arranged, call):
    ours, theirs = (CALLS[call](t, ARRANGED[arranged](t)) for t in (backlight, torch))
    assert (tuple(ours.shape), tuple(ours.stride())) == (tuple(theirs.shape), theirs.stride())
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("dims", (2, 3))
def test_a_mean_of_channels_last_planes_is_restrided_by_a_node(dims):
    seen = []
    for t in (backlight, torch):
        x = numbers(t, 2, 3, *[2] * dims)
        x = x.to(memory_format=t.channels_last if dims == 2 else t.channels_last_3d).requires_grad_()
        out = getattr(t.nn.functional, f"adaptive_avg_pool{dims}d")(x * 1, 1)
        (out * out).sum().backward()
        last = out.grad_fn
        seen.append((last.name(), last.next_functions[0][0].name(), out.stride(), out._version, x.grad.tolist()))
    assert seen[0] == seen[1]
