"""Grid sampling and affine grids: values, gradients and messages are PyTorch's."""

from itertools import product

import numpy as np
import pytest
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression

import backlight

MODES = [
    (mode, dims) for mode, dims in product(("bilinear", "nearest", "bicubic"), (2, 3)) if (mode, dims) != ("bicubic", 3)
]


def sampled(t, dims, dtype, sizes=None, **options):
    """Return samples far outside the input too, and the gradients of a fixed weighting of them."""
    x = filled(t, 2, 3, *(sizes or (4, 5, 3)[:dims]), dtype=dtype).requires_grad_()
    grid = (filled(t, 2, *(3, 4, 2)[:dims], dims, dtype=dtype, start=0.3) * 2.6).requires_grad_()
    grid.retain_grad()
    out = t.nn.functional.grid_sample(x, grid, **options)
    (out * filled(t, *out.shape, dtype=dtype, start=0.7)).sum().backward()
    return out.detach(), x.grad, grid.grad


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-4)])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "dims"), MODES)
def test_samples_and_gradients_equal_pytorch(mode, dims, padding_mode, align_corners, dtype, tolerance):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    ours, theirs = (sampled(t, dims, dtype, **options) for t in BOTH)
    assert_same(ours, theirs, tolerance, tolerance)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_an_input_of_one_row_equals_pytorch(padding_mode):
    options = {"sizes": (1, 5), "padding_mode": padding_mode, "align_corners": True}
    ours, theirs = (sampled(t, 2, "float64", **options) for t in BOTH)
    assert_same(ours, theirs, 1e-8, 1e-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_keep_their_dtype(dtype):
    out, grad, _ = sampled(backlight, 2, dtype, align_corners=False)
    assert str(out.dtype) == str(grad.dtype) == f"torch.{dtype}"


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(1, 1, 3, 4), (1, 1, 2, 3, 4)], ids=str)
def test_the_identity_map_samples_the_input_itself(size, align_corners):
    dims = len(size) - 2
    x = filled(backlight, *size, dtype="float64")
    theta = backlight.eye(dims, dims + 1, dtype=backlight.float64).unsqueeze(0)
    grid = backlight.nn.functional.affine_grid(theta, size, align_corners)
    found = backlight.nn.functional.grid_sample(x, grid, align_corners=align_corners)
    np.testing.assert_allclose(found.numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 3, 5, 2, 4)], ids=str)
def test_affine_grids_and_gradients_equal_pytorch(size, align_corners, dtype, tolerance):
    results = []
    for t in BOTH:
        theta = filled(t, 2, len(size) - 2, len(size) - 1, dtype=dtype).requires_grad_()
        grid = t.nn.functional.affine_grid(theta, size, align_corners=align_corners)
        (grid * filled(t, *grid.shape, dtype=dtype)).sum().backward()
        results.append((grid.detach(), theta.grad))
    assert_same(*results, tolerance, tolerance * 10)


def test_leaving_align_corners_out_warns():
    for t in BOTH:
        with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
            t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2))
        with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
            t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 1, 1, 2))


@pytest.mark.parametrize(
    "call",
    [
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 2, 3))",
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 1))",
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(2, 3, 3, 2))",
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 2).double())",
        "grid_sample(torch.ones(2, 4, 4), torch.ones(1, 3, 3, 2))",
        "grid_sample(torch.ones(1, 2, 4, 4, 3), torch.ones(1, 3, 3, 2, 3), mode='bicubic')",
        "grid_sample(torch.ones(1, 2, 0, 4), torch.ones(1, 3, 3, 2))",
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 2), mode='linear')",
        "grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 2), padding_mode='edge')",
        "grid_sample(torch.ones(1, 2, 4, 4).long(), torch.ones(1, 3, 3, 2).long())",
        "grid_sample(torch.ones(0, 2, 4, 4), torch.ones(0, 3, 3, 2)).shape",
        "affine_grid(torch.ones(1, 2, 3), (1, 1, 2))",
        "affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2, 2))",
        "affine_grid(torch.ones(1, 2, 3), (1, 1, 0, 2))",
        "affine_grid(torch.ones(1, 2, 3).long(), (1, 1, 2, 2))",
        "affine_grid(torch.ones(1, 2, 3), (2, 1, 2, 2))",
    ],
)
def test_messages_are_pytorchs(call):
    assert_expression(f"torch.nn.functional.{call}")


def test_places_that_are_no_numbers_give_what_pytorch_gives():
    results = []
    for t in BOTH:
        grid = t.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [-5.0, 5.0]]]])
        x = filled(t, 1, 1, 4, 4)
        results.append(
            [
                t.nn.functional.grid_sample(x, grid, "bilinear", mode, False)
                for mode in ("zeros", "border", "reflection")
            ]
        )
    assert_same(*results, 1e-6, 1e-6)


def test_node_names_are_pytorchs():
    names = []
    for t in BOTH:
        x, grid = t.ones(1, 1, 2, 2, requires_grad=True), t.zeros(1, 1, 1, 2)
        theta = t.ones(1, 2, 3, requires_grad=True)
        outs = t.grid_sampler_2d(x, grid, 0, 0, False), t.nn.functional.affine_grid(theta, (1, 1, 2, 2), False)
        names.append([type(out.grad_fn).__name__ for out in outs])
    assert names[0] == names[1]
