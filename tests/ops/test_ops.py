"""Every op's Case: forward, dtypes, integers, strides, 0-d, gradient, gradcheck, gradgradcheck, all against PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from case import TOLERANCE, assert_same, flat
from for_each import for_each

import backlight
from backlight.autograd import gradcheck, gradgradcheck
from backlight.codegen.declaration import TABLE
from cases import ALL

by_name = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
differentiable = pytest.mark.parametrize("case", [c for c in ALL if c.differentiable], ids=lambda case: case.name)

# Ops that no user calls: parts of in-place writes and of derivatives. They are tested through these.
INTERNAL = {"as_strided_view", "take_positions", "add_positions", "put_positions", "new_zeros"}
INTERNAL |= {"spread", "tie_weights", "value_selecting_reduction_backward", "divide_or_zero"}  # of reductions
INTERNAL |= {"reverse_cumsum", "shift", "linear_recurrence", "cummaxmin_backward"}  # of scans
INTERNAL |= {"select_backward", "slice_backward", "diagonal_backward", "unfold_backward"}  # of views
INTERNAL |= {"gather_sparse_backward"}  # its result is sparse; in torch_api/test_stricter_calls.py
INTERNAL |= {
    "gathered_as",
    "index_backward",
    "masked_unselect",
    "filled_up",
    "first_elements",
    "repeating_pad_backward",
    "convolution_weight",
    *("add_at_places", "taken_at_places", "avg_pool2d_backward", "avg_pool3d_backward"),
    *("adaptive_avg_pool2d_backward", "adaptive_avg_pool3d_backward"),
    *("upsample_backward", "affine_grid_generator_backward"),
    *("tanh_backward", "sigmoid_backward", "relu_backward", "leaky_relu_backward", "elu_backward", "erf_backward"),
    *("softplus_backward", "log_sigmoid_backward", "gelu_backward", "silu_backward"),  # gradgradcheck of each function
    *("hardtanh_backward", "hardsigmoid_backward", "hardswish_backward", "softshrink_backward", "hardshrink_backward"),
    *("cofactors", "cofactor_derivative", "permutation_matrix"),  # of det: test_linalg.py
    *("drawn_gamma", "drawn_dirichlet"),  # tests/distributions/test_samples.py has these
    *("drawn_bernoulli", "drawn_poisson", "drawn_normal", "drawn_normal_of_means", "drawn_normal_of_stds"),
    *("native_dropout", "native_dropout_backward", "_fft_c2c", "_fft_r2c", "_fft_c2r"),  # test_opinfo.py has these
    *("complex", "conj_physical", "imag", "linalg_eig", "polar", "real", "view_as_complex", "view_as_real"),  # it, too
    *("of_pairs", "to_pairs", "with_zeros", "view_of_parts"),  # gradgradcheck in test_complex_gradients.py
    *("rrelu_with_noise", "segment_reduce"),  # test_opinfo.py and test_segments.py have these
    "unique_dim",  # unique with dim: tests/ops/test_opinfo.py and an idiom script have it
    "embedding_sparse_backward",  # tests/tensor/test_sparse.py has it and all ops of the sparse layout
    *("rnn_steps", "gru_steps", "lstm_steps"),  # gradcheck and gradgradcheck in test_recurrent.py
}


def test_every_op_has_a_case():
    sparse = {name for name, op in TABLE.items() if op.forward.__module__.startswith("backlight.ops.sparse.")}
    missing = set(TABLE) - {case.op for case in ALL} - INTERNAL - sparse
    assert not missing, f"ops without a Case: {sorted(missing)}"


@by_name
def test_forward_equals_pytorch(case):
    def check(dtype):
        ours = case.call(backlight, *case.tensors(backlight, dtype))
        theirs = case.call(torch, *case.tensors(torch, dtype))
        assert_same(ours, theirs, *case.tolerance.get(dtype, TOLERANCE[dtype]))

    for_each(case.dtypes, check)


@pytest.mark.parametrize("case", [c for c in ALL if c.integer], ids=lambda case: case.name)
def test_integers_give_what_pytorch_gives(case):
    def check(kind):
        arrays = [np.abs(np.round(array)) if array.dtype.kind == "f" else array for array in case.arrays()]
        ours = case.call(backlight, *case.tensors(backlight, arrays=arrays, cast=kind))
        theirs = case.call(torch, *case.tensors(torch, arrays=arrays, cast=kind))
        assert_same(ours, theirs, 2e-5, 1e-6)

    for_each(["int64", "int32", "uint8", "bool"], check)


def strided(tensor):
    """Return an equal tensor whose memory runs the other way round."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.ndim > 1 else tensor


@by_name
def test_strided_input_gives_the_same(case):
    ours = case.call(backlight, *[strided(tensor) for tensor in case.tensors(backlight)])
    theirs = case.call(torch, *[strided(tensor) for tensor in case.tensors(torch)])
    assert_same(ours, theirs, *case.tolerance.get("float64", TOLERANCE["float64"]))


def gradients(module, case, dtype):
    """Return the gradients of a fixed weighting of the outputs."""
    tensors = case.tensors(module, dtype, requires_grad=True)
    outputs = [one for one in flat(case.call(module, *tensors)) if one.requires_grad]
    rng = np.random.default_rng(1)
    weights = [module.tensor(rng.normal(size=tuple(one.shape)).tolist(), dtype=module.float64) for one in outputs]
    weights = [weight.reshape(one.shape).to(one.dtype) for weight, one in zip(weights, outputs)]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    return module.autograd.grad(outputs, wanted, weights, allow_unused=True)


@pytest.mark.parametrize("case", [c for c in ALL if c.differentiable and c.grad_parity], ids=lambda case: case.name)
def test_gradient_equals_pytorch(case):
    def check(dtype):
        rtol, atol = case.tolerance.get(dtype, TOLERANCE[dtype])
        ours, theirs = gradients(backlight, case, dtype), gradients(torch, case, dtype)
        for number, (a, b) in enumerate(zip(ours, theirs)):
            if a is None or b is None:
                present = a if b is None else b
                assert present is None or not np.any(present.detach().numpy()), f"input {number}: {a} against {b}"
            else:
                assert_same(a, b, rtol * 10, atol * 10, f"gradient of input {number}")

    for_each([dtype for dtype in ("float64", "float32") if dtype in case.dtypes], check)


def flattened(case) -> Callable:
    """Return the call of a case with all its outputs in one tuple: some return tuples of tuples."""
    return lambda *tensors: tuple(flat(case.call(backlight, *tensors)))


@differentiable
def test_gradcheck(case):
    assert gradcheck(flattened(case), case.tensors(backlight, requires_grad=True))


@pytest.mark.parametrize("case", [c for c in ALL if c.differentiable and c.second], ids=lambda case: case.name)
def test_gradgradcheck(case):
    assert gradgradcheck(flattened(case), case.tensors(backlight, requires_grad=True))
