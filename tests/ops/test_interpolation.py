"""Interpolation: sizes, factors, modes and messages as PyTorch has them."""

from itertools import product

import numpy as np
import pytest
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression

import backlight
import backlight.nn.functional as F
from backlight.kernels.nn.resampling import Resize, taps_of, transposed_taps

PRECISIONS = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
PLANES = [("bilinear", False), ("bicubic", False), ("bilinear", True), ("bicubic", True)]


def resized(t, shape, dtype="float64", **options):
    """Return the resized tensor and the gradient of a fixed weighting of it."""
    x = filled(t, *shape, dtype=dtype).requires_grad_()
    out = t.nn.functional.interpolate(x, **options)
    (out * filled(t, *out.shape, dtype=dtype, start=0.7)).sum().backward()
    return out.detach(), x.grad


@PRECISIONS
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area"])
def test_every_old_and_new_size_equals_pytorch(mode, dtype, tolerance):
    for old, new in product((1, 2, 3, 4, 7, 10), (1, 2, 3, 5, 8, 13, 20)):
        ours, theirs = (resized(t, (1, 2, old), dtype, size=new, mode=mode) for t in BOTH)
        assert_same(ours, theirs, tolerance, tolerance, f"{old} -> {new}")


@PRECISIONS
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("mode", "antialias"), PLANES)
def test_planes_of_every_size_equal_pytorch(mode, antialias, align_corners, dtype, tolerance):
    for old, new in product((1, 2, 5, 9), (1, 3, 5, 16)):
        options = {"size": (new, 4), "mode": mode, "align_corners": align_corners, "antialias": antialias}
        ours, theirs = (resized(t, (1, 2, old, 6), dtype, **options) for t in BOTH)
        assert_same(ours, theirs, tolerance, tolerance * 10, f"{old} -> {new}")


@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("factor", [0.3, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2, 2.7])
@pytest.mark.parametrize(
    ("mode", "antialias"), [*PLANES, ("nearest", False), ("nearest-exact", False), ("area", False)]
)
def test_factors_equal_pytorch(mode, antialias, factor, recompute):
    options = {"scale_factor": factor, "mode": mode, "antialias": antialias, "recompute_scale_factor": recompute}
    ours, theirs = (resized(t, (1, 2, 7, 10), **options) for t in BOTH)
    assert_same(ours, theirs, 1e-8, 1e-8)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_a_factor_that_rounds_to_the_same_size_gives_pytorchs_output(mode):
    ours, theirs = (t.nn.functional.interpolate(filled(t, 1, 2, 3, 5), scale_factor=1.3, mode=mode) for t in BOTH)
    assert_same(ours, theirs, 1e-5, 1e-5)


def test_volumes_equal_pytorch():
    for mode, options in (("trilinear", {"align_corners": True}), ("nearest-exact", {}), ("area", {})):
        ours, theirs = (resized(t, (1, 2, 4, 3, 5), size=(2, 6, 4), mode=mode, **options) for t in BOTH)
        assert_same(ours, theirs, 1e-8, 1e-8)


def test_lanczos_equals_pytorch():
    ours, theirs = (resized(t, (1, 2, 9, 6), size=(4, 11), mode="lanczos", antialias=True) for t in BOTH)
    assert_same(ours, theirs, 1e-8, 1e-8)


def test_bytes_may_be_repeated():
    ours, theirs = (
        t.nn.functional.interpolate(t.arange(12).to(t.uint8).reshape(1, 1, 3, 4), size=(5, 7)) for t in BOTH
    )
    assert_same(ours, theirs, 0, 0)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic", "lanczos"])
def test_transposed_taps_are_the_transposed_matrix(mode):
    for old, new in ((9, 4), (3, 40), (5, 5)):
        resize = Resize(mode, old, new, antialias=mode == "lanczos")
        plain, transposed = taps_of(resize, np.float64), transposed_taps(resize, np.float64)
        np.testing.assert_allclose(transposed.matrix(np.float64), plain.matrix(np.float64).T, atol=1e-15)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation_keeps_a_constant(mode):
    for antialias in (False, True):
        weights = taps_of(Resize(mode, 7, 3, antialias=antialias), np.float64).weights
        np.testing.assert_allclose(weights.sum(1), 1)


def test_an_infinity_stays_where_it_is():
    x = backlight.zeros(1, 1, 8)
    x[0, 0, 7] = float("inf")
    assert F.interpolate(x, size=16, mode="linear")[0, 0, :12].tolist() == [0.0] * 12


# --- layers -----------------------------------------------------------------------------------------------------------

LAYERS = [
    "Upsample(scale_factor=2)",
    "Upsample(size=(4, 6), mode='bilinear', align_corners=True)",
    "Upsample(scale_factor=(1.5, 2), mode='bicubic')",
    "Upsample(scale_factor=1.3, mode='bilinear', recompute_scale_factor=True)",
    "UpsamplingNearest2d(scale_factor=2)",
    "UpsamplingNearest2d(5)",
    "UpsamplingBilinear2d(size=(3, 7))",
]


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_print_and_compute_as_pytorchs(layer):
    ours, theirs = (eval(f"t.nn.{layer}") for t in BOTH)
    assert repr(ours) == repr(theirs)
    assert not ours.state_dict()
    assert_same(*(one(filled(t, 1, 2, 3, 4)) for one, t in zip((ours, theirs), BOTH)), 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["upsample", "upsample_nearest", "upsample_bilinear"])
def test_old_names_warn_and_compute(name):
    results = []
    for t in BOTH:
        with pytest.warns(UserWarning, match=f"`nn.functional.{name}` is deprecated"):
            results.append(getattr(t.nn.functional, name)(filled(t, 1, 1, 2, 3), scale_factor=2))
    assert_same(*results, 1e-6, 1e-6)


@pytest.mark.parametrize(
    "call",
    [
        "torch.ones(1, 1, 4)",
        "torch.ones(1, 1, 4), 3, 2.0",
        "torch.ones(1, 1, 4), 3, align_corners=True",
        "torch.ones(1, 1, 4), (3, 3)",
        "torch.ones(1, 1, 4), (3.5,)",
        "torch.ones(1, 1, 4), scale_factor=(2, 3)",
        "torch.ones(1, 1, 4), 3, recompute_scale_factor=True",
        "torch.ones(1, 1, 4), 0",
        "torch.ones(1, 1, 0), 2",
        "torch.ones(1, 0, 3), 2",
        "torch.ones(1, 1, 4, 4), scale_factor=0.1",
        "torch.ones(1, 1, 4, 4, 4), (2, 0, 2), mode='trilinear'",
        "torch.ones(1, 1, 4), 3, mode='bilinear'",
        "torch.ones(1, 1, 4, 4), 3, mode='linear'",
        "torch.ones(1, 1, 4, 4), 3, mode='trilinear'",
        "torch.ones(1, 1, 4, 4, 4), 3, mode='bilinear'",
        "torch.ones(1, 1, 4), 3, mode='bicubic'",
        "torch.ones(4, 4), 3",
        "torch.ones(1, 1, 4, 4), 3, mode='cubic'",
        "torch.ones(1, 1, 4), 3, mode='linear', antialias=True",
        "torch.ones(1, 1, 4, 4), 3, mode='nearest', antialias=True",
        "torch.ones(1, 1, 4, 4), 3, mode='lanczos'",
        "torch.ones(1, 1, 4, 4), 3, mode='lanczos', antialias=True, align_corners=True",
        "torch.ones(0, 1, 4), 3, mode='linear'",
    ],
)
def test_messages_are_pytorchs(call):
    assert_expression(f"torch.nn.functional.interpolate({call})")


def test_node_names_are_pytorchs():
    modes = [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2)]
    for mode, dims in [*modes, ("bicubic", 2), ("trilinear", 3)]:
        names = []
        for t in BOTH:
            x = t.ones(1, 1, *(3,) * dims, requires_grad=True)
            names.append(type(t.nn.functional.interpolate(x, scale_factor=2, mode=mode).grad_fn).__name__)
        assert names[0] == names[1]
