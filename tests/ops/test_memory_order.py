"""Strides of results and of `.grad`: PyTorch's, for inputs in channels last and with dims in other orders."""

import re

import pytest
from opinfo_run import entries, full_name
from opinfo_strides import differences

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
