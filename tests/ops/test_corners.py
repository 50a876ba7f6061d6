"""Values, gradients and refusals at the corners of ops: NaN, infinities, empty and 0-d tensors, integers, overflow.

Each call runs on PyTorch too, whose answer is the right one. They were found by calling every op of PyTorch's test
samples with changed arguments.
"""

import numpy as np
import pytest
import torch
from case import as_array, assert_same, flat

import backlight

INF, NAN = float("inf"), float("nan")
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, -3.0, 1e30, -1e30]
PAIRS = [(a, b) for a in EDGES for b in EDGES]

VALUES = {
    "angle of infinities": lambda t: t.angle(t.tensor(EDGES)),
    "heaviside of NaN": lambda t: t.heaviside(t.tensor([NAN, 0.0, 1.0]), t.tensor(5.0)),
    "xlogy": lambda t: t.xlogy(*t.tensor(PAIRS).unbind(1)),
    "xlog1py": lambda t: t.special.xlog1py(*t.tensor(PAIRS).unbind(1)),
    "std of squares that overflow": lambda t: t.std(t.tensor([[1e30, -1e30, 3e25], [1.0, 2.0, 3.0]]), 1),
    "std_mean of a sum that overflows": lambda t: t.std_mean(t.tensor([3e38, 3e38, 3e38])),
    "var that overflows": lambda t: t.var(t.tensor([1e30, -1e30])),
    "scatter_add into 0-d": lambda t: t.scatter_add(t.tensor(1.0), 0, t.tensor([0]), t.tensor(2.0)),
    "scatter_add by a 0-d index": lambda t: t.scatter_add(t.tensor([1.0]), 0, t.tensor(0), t.tensor([2.0, 3.0])),
    "scatter by a 0-d index": lambda t: t.scatter(t.tensor([1.0, 2.0]), 0, t.tensor(1), t.tensor([2.0, 3.0])),
    "scatter into 0-d": lambda t: t.scatter(t.tensor(1.0), 0, t.tensor([0]), t.tensor([2.0, 3.0])),
    "scatter_reduce into 0-d": lambda t: t.scatter_reduce(t.tensor(2.0), 0, t.tensor([0]), t.tensor(3.0), "prod"),
    "index_add of bytes": lambda t: t.index_add(
        t.tensor([3], dtype=t.uint8), 0, t.tensor([0]), t.tensor([4], dtype=t.uint8), alpha=-1
    ),
    "nearest bytes": lambda t: t.nn.functional.interpolate(
        t.arange(8, dtype=t.uint8).reshape(1, 2, 4), scale_factor=1.7
    ),
    "avg_pool2d of integers": lambda t: t.nn.functional.avg_pool2d(t.arange(9).reshape(1, 3, 3) - 4, 2, padding=1),
    "avg_pool1d of integers": lambda t: t.nn.functional.avg_pool1d(t.arange(9).reshape(1, 9) - 4, 2),
    "adaptive_avg_pool1d beside NaN": lambda t: t.nn.functional.adaptive_avg_pool1d(
        t.tensor([[NAN, 1.0, 2.0, 3.0, 4.0, 5.0, INF, 7.0]]), 4
    ),
    "adaptive_avg_pool2d of no channels": lambda t: t.nn.functional.adaptive_avg_pool2d(t.ones(2, 0, 4, 4), 2),
    "adaptive_max_pool2d of no examples": lambda t: t.nn.functional.adaptive_max_pool2d(t.ones(0, 2, 4, 4), 2),
    "max_unpool1d of no examples": lambda t: t.nn.functional.max_unpool1d(t.ones(0, 4), t.zeros(0, 4).long(), 2),
    "interpolate, antialiased, beside NaN": lambda t: t.nn.functional.interpolate(
        t.tensor([NAN, *range(1, 39), INF]).reshape(1, 1, 1, 40), (1, 3), mode="bilinear", antialias=True
    ),
    "trapezoid of bytes": lambda t: t.trapezoid(t.tensor([[200, 250], [1, 2]], dtype=t.uint8), dx=3.0),
    "trapezoid of nothing": lambda t: t.trapezoid(t.ones(0, 3), t.ones(6), dim=0),
    "cov of integers": lambda t: t.cov(t.tensor([[1, 2, 4], [3, 1, 0]])),
    "corrcoef of integers": lambda t: t.corrcoef(t.tensor([[1, 2, 4], [3, 1, 0]])),
    "diff of integers beside floats": lambda t: t.diff(t.ones(3, dtype=t.int64), prepend=t.ones(2)),
    "unsafe_chunk of nothing": lambda t: t.unsafe_chunk(t.ones(0, 5), 2),
    "tensordot of bytes": lambda t: t.tensordot(
        t.ones(1, 1, 1, dtype=t.uint8), t.ones(2, 1, 2, dtype=t.uint8), dims=((0, 1), (2, 0))
    ),
    "cross_entropy of no classes": lambda t: t.nn.functional.cross_entropy(t.zeros(2, 0), t.zeros(2, 0)),
    "polygamma at huge numbers below 0": lambda t: t.polygamma(
        1, t.tensor([-3.0, NAN, -1e6 - 0.5], dtype=t.float64)[1:]
    ),
    "smoothed cross_entropy of no classes": lambda t: t.nn.functional.cross_entropy(
        t.zeros(2, 0), t.zeros(2, 0), label_smoothing=0.1
    ),
    "group_norm of empty planes": lambda t: t.nn.functional.group_norm(t.ones(1, 6, 0), 2),
    "masked.amax of a bool": lambda t: t.masked.amax(t.tensor(True)),
    "lerp by a number of another dtype": lambda t: t.lerp(t.zeros(2), t.ones(2), t.tensor(0.25, dtype=t.float64)),
    "cdist by the largest of no coordinates": lambda t: t.cdist(t.ones(2, 0), t.ones(3, 0), INF),
    "pdist by the largest of no coordinates": lambda t: t.pdist(t.ones(3, 0), INF),
    "gradients of one output of which more are given": lambda t: t.autograd.grad(
        *[t.ones(2, requires_grad=True)] * 2, [t.ones(2), t.ones(3)]
    ),
    "conv_transpose1d with another bias": lambda t: t.nn.functional.conv_transpose1d(
        t.ones(1, 1, 3), t.ones(1, 1, 2), t.ones(1, dtype=t.float64) / 3
    ),
    "conv_transpose2d of no examples": lambda t: t.nn.functional.conv_transpose2d(
        t.ones(0, 1, 0, 3), t.ones(1, 1, 1, 1)
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_corner_has_pytorchs_value(name):
    assert_same(VALUES[name](backlight), VALUES[name](torch), 2e-5, 1e-6)


def spread_out(t, **options):
    """Return a call that enlarges or reduces a signal along its last dim."""
    return lambda x: t.nn.functional.interpolate(x, **options)


# name: (the function of differentiable inputs, given the module; the inputs)
GRADIENTS = {
    "digamma far below 0": (lambda t: t.digamma, [[-20.25, -1000.75, -0.5, 3.0]]),
    "polygamma far below 0": (lambda t: lambda x: t.polygamma(1, x), [[-20.25, -100.75, -0.5, 3.0]]),
    "nextafter": (lambda t: t.nextafter, [[1.0, 1.0, 2.0], [1.0, 2.0, 1.0]]),
    "binary_cross_entropy": (
        lambda t: lambda x, y: t.nn.functional.binary_cross_entropy(x, y, reduction="sum"),
        [[0.0, 1.0, 0.5], [0.0, 1.0, 1.0]],
    ),
    "conv_transpose2d with another bias": (
        lambda t: lambda x, bias: t.nn.functional.conv_transpose2d(x.float(), t.ones(1, 1, 2, 2), bias),
        [np.ones((1, 1, 3, 3)).tolist(), [0.5]],
    ),
    "grid_sample of no examples": (
        lambda t: (
            lambda x, grid: t.nn.functional.grid_sample(
                x.expand(0, 1, 3, 3), grid.expand(0, 2, 2, 2), align_corners=False
            )
        ),
        [np.ones((1, 1, 3, 3)).tolist(), np.zeros((1, 2, 2, 2)).tolist()],
    ),
    "embedding of nothing": (
        lambda t: lambda weight: t.nn.functional.embedding(t.zeros(0, dtype=t.int64), weight),
        [np.ones((3, 0)).tolist()],
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_corner_has_pytorchs_gradient(name):
    function, inputs = GRADIENTS[name]
    found = []
    for module in (backlight, torch):
        leaves = [module.tensor(one, dtype=module.float64, requires_grad=True) for one in inputs]
        found.append(module.autograd.grad(function(module)(*leaves).sum(), leaves))
    assert_same(*found, 2e-5, 1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [3, 40])
def test_a_nan_gradient_reaches_only_what_its_element_was_made_of(mode, size):
    found = []
    for module in (backlight, torch):
        x = module.zeros(1, 1, 1, 10, requires_grad=True)
        y = spread_out(module, size=(1, size), mode=mode)(x)
        weights = module.zeros(1, 1, 1, size)
        weights[..., 1] = NAN
        found.append(as_array(module.autograd.grad(y, x, weights)[0]))
    ours, theirs = map(np.isnan, found)
    assert ours.any()
    assert not (ours & ~theirs).any()  # PyTorch also multiplies NaN by weights of 0


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("place", [(5.0, 5.0), (1.2, 0.9), (0.0, 0.0), (-5.0, 0.6)])
def test_a_sample_reads_nothing_outside_the_picture(place, mode, padding_mode):
    found = []
    for module in (backlight, torch):
        x = module.arange(9, dtype=module.float64).reshape(1, 1, 3, 3)
        x[..., 2, 2] = NAN
        grid = module.tensor([[[place]]], dtype=module.float64)
        leaves = [x.requires_grad_(), grid.requires_grad_()]
        y = module.nn.functional.grid_sample(*leaves, mode=mode, padding_mode=padding_mode, align_corners=True)
        found.append([y, *module.autograd.grad(y.sum(), leaves)])
    assert_same(*found, 1e-9, 1e-9)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("stride", "dilation", "padding"), [(1, 2, 0), (1, 3, 1), (2, 1, 0), (3, 1, 0)])
def test_a_nan_in_a_kernel_reaches_only_what_it_touched(dims, stride, dilation, padding):
    found = []
    for module in (backlight, torch):
        convolve = getattr(module.nn.functional, f"conv{dims}d")
        x = module.ones(1, 1, *(7,) * dims, requires_grad=True)
        weight = module.ones(1, 1, *(2,) * dims)
        weight.view(-1)[0] = NAN
        y = convolve(x, weight, stride=stride, dilation=dilation, padding=padding)
        found.append(module.autograd.grad(y.sum(), x))
    assert_same(*found, 1e-6, 0)


@pytest.mark.parametrize("name", ["interpolation_mode", "padding_mode"])
def test_a_number_that_stands_for_no_mode_is_refused(name):  # PyTorch returns what the memory held
    modes = {"interpolation_mode": 0, "padding_mode": 0} | {name: 7}
    with pytest.raises(RuntimeError, match=rf"^grid_sampler\(\): {name} must be 0 .*, got 7$"):
        backlight.grid_sampler_2d(backlight.ones(1, 1, 3, 3), backlight.zeros(1, 2, 2, 2), **modes, align_corners=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "baddbmm", "addbmm"])
def test_a_weighted_sum_of_products_has_gradients_in_half_precision(name, dtype):
    shapes = {
        "addmm": [(2, 3), (2, 2), (2, 3)],
        "addmv": [(2,), (2, 3), (3,)],
        "addr": [(2, 3), (2,), (3,)],
        "baddbmm": [(2, 2, 3), (2, 2, 2), (2, 2, 3)],
        "addbmm": [(2, 3), (2, 2, 2), (2, 2, 3)],
    }
    found = []
    for module in (backlight, torch):
        leaves = [module.ones(*shape, dtype=getattr(module, dtype), requires_grad=True) for shape in shapes[name]]
        found.append(module.autograd.grad(getattr(module, name)(*leaves, beta=0.5, alpha=0.25).sum(), leaves))
    assert_same(*found, 1e-2, 1e-2)


REFUSALS = {
    "a pool's negative padding": lambda t: t.nn.functional.max_pool1d(t.ones(1, 2, 4), 2, padding=-1),
    "a pool's kernel of two sizes": lambda t: t.nn.functional.max_pool1d(t.ones(1, 2, 4), (1, 1)),
    "a pool's kernel that is no int": lambda t: t.nn.functional.avg_pool2d(t.ones(1, 2, 4, 4), 2.0),
    "a pool over nothing": lambda t: t.nn.functional.avg_pool2d(t.ones(0, 4, 4), 2),
    "a 3-D pool over nothing": lambda t: t.nn.functional.avg_pool3d(t.ones(0, 4, 4, 4), 2),
    "an adaptive pool to a negative size": lambda t: t.nn.functional.adaptive_max_pool2d(t.ones(1, 2, 4, 4), -1),
    "an adaptive pool to no size": lambda t: t.nn.functional.adaptive_avg_pool1d(t.ones(1, 2, 4), ()),
    "an adaptive pool of integers": lambda t: t.nn.functional.adaptive_avg_pool2d(t.arange(9).reshape(1, 3, 3), 2),
    "max_pool2d of bools": lambda t: t.nn.functional.max_pool2d(t.ones(1, 3, 3, dtype=t.bool), 2),
    "max_unpool2d of a matrix": lambda t: t.nn.functional.max_unpool2d(t.ones(4, 4), t.ones(4, 4).long(), 2),
    "roll of a 0-d tensor": lambda t: t.roll(t.tensor(1.0), 0, 0),
    "trapezoid of bools": lambda t: t.trapezoid(t.tensor([True, False])),
    "cov of bools": lambda t: t.cov(t.tensor([True, False])),
    "cov with float counts": lambda t: t.cov(t.ones(5), fweights=t.ones(5)),
    "cov with a matrix of weights": lambda t: t.cov(t.ones(5), aweights=t.ones(5, 5)),
    "cov with too few weights": lambda t: t.cov(t.ones(5), aweights=t.ones(1)),
    "cov with negative weights": lambda t: t.cov(t.ones(5), aweights=-t.ones(5)),
    "cov with weights that sum to zero": lambda t: t.cov(t.ones(5), aweights=t.zeros(5)),
    "three shapes that do not broadcast": lambda t: t.where(t.ones(2, 1) > 0, t.ones(1, 3), t.ones(4, 1)),
    "hstack of nothing": lambda t: t.hstack([]),
    "vstack of nothing": lambda t: t.vstack([]),
    "dstack of nothing": lambda t: t.dstack([]),
    "embedding in a vector": lambda t: t.nn.functional.embedding(t.tensor([0]), t.ones(3)),
    "rms_norm over no dims": lambda t: t.nn.functional.rms_norm(t.ones(2, 3), []),
    "rms_norm with another weight": lambda t: t.nn.functional.rms_norm(t.ones(2, 3), [3], t.ones(2)),
    "prelu of a 0-d tensor": lambda t: t.nn.functional.prelu(t.tensor(1.0), t.ones(2)),
    "hardtanh between bounds in disorder": lambda t: t.nn.functional.hardtanh(t.ones(2), 0.5, -0.5),
    "searchsorted with another sorter": lambda t: t.searchsorted(t.ones(3), 1.0, sorter=t.tensor([0, 1])),
    "nanmean in integers": lambda t: t.nanmean(t.ones(2), dtype=t.int32),
    "vector_norm of integers": lambda t: t.linalg.vector_norm(t.arange(3), dtype=t.float32),
    "cholesky in half precision": lambda t: t.linalg.cholesky(t.eye(2, dtype=t.float16)),
    "cholesky_solve in half precision": lambda t: t.cholesky_solve(*[t.eye(2, dtype=t.bfloat16)] * 2),
    "svd in half precision": lambda t: t.linalg.svd(t.eye(2, dtype=t.float16)),
    "solve in half precision": lambda t: t.linalg.solve(*[t.eye(2, dtype=t.float16)] * 2),
    "qr in half precision": lambda t: t.linalg.qr(t.eye(2, dtype=t.bfloat16)),
    "solve_triangular in half precision": lambda t: t.linalg.solve_triangular(
        *[t.eye(2, dtype=t.float16)] * 2, upper=True
    ),
    "lu_solve in half precision": lambda t: t.linalg.lu_solve(
        t.eye(2, dtype=t.float16), t.tensor([1, 2], dtype=t.int32), t.eye(2, dtype=t.float16)
    ),
    "conv_transpose1d of no places": lambda t: t.nn.functional.conv_transpose1d(t.ones(1, 1, 0), t.ones(1, 1, 1)),
    "conv2d of no rows": lambda t: t.nn.functional.conv2d(t.ones(1, 1, 0, 5), t.ones(1, 1, 2, 2), padding=1),
    "conv_transpose3d with another bias": lambda t: t.nn.functional.conv_transpose3d(
        t.ones(1, 1, 2, 2, 2), t.ones(1, 1, 2, 2, 2), t.ones(1, dtype=t.float64)
    ),
    "lerp to another dtype": lambda t: t.lerp(t.ones(2), t.ones(2).double(), 0.5),
    "lerp by another dtype": lambda t: t.lerp(t.ones(2), t.ones(2), t.ones(2).double()),
    "lerp to another dtype in place": lambda t: t.ones(2).double().lerp_(t.ones(2), 0.5),
    "lerp of integers to floats": lambda t: t.lerp(t.arange(2), t.ones(2), 0.5),
    "unique along no dim": lambda t: t.unique(t.tensor(3.0), dim=0),
    "unique of empty slices": lambda t: t.unique(t.ones(0, 3), dim=1),
    "unique_consecutive along no dim": lambda t: t.unique_consecutive(t.tensor(3.0), dim=0),
    "unique_consecutive of empty slices": lambda t: t.unique_consecutive(t.ones(0, 3), dim=1),
    "unique of nothing": lambda t: t.unique(t.ones(0, 0), dim=1),
    "fftshift along no dim": lambda t: t.fft.fftshift(t.tensor(3.0), dim=0),
    "ifftshift along no dim": lambda t: t.fft.ifftshift(t.tensor(3.0), dim=0),
    "multi_dot of a number": lambda t: t.linalg.multi_dot([t.tensor(1.0), t.ones(2, 2)]),
    "multi_dot of numbers": lambda t: t.linalg.multi_dot([t.tensor(1.0), t.tensor(1.0)]),
    "slice_scatter by no step": lambda t: t.slice_scatter(t.ones(3), t.ones(3), 0, 0, 3, 0),
    "slice_copy by no step": lambda t: t.slice_copy(t.ones(3), 0, 0, 3, 0),
    "renorm by the largest of nothing": lambda t: t.renorm(t.ones(2, 0), INF, 0, 1.0),
    "softshrink of integers": lambda t: t.nn.functional.softshrink(t.arange(3)),
}


def test_a_transposed_convolution_of_bfloat16_refuses_another_bias():
    """PyTorch refuses it in these words where oneDNN computes in bfloat16, and takes it on other processors."""
    x = backlight.ones(1, 1, 2, dtype=backlight.bfloat16)
    with pytest.raises(RuntimeError, match=r"Input type .*BFloat16.* should be the same"):
        backlight.nn.functional.conv_transpose1d(x, x, backlight.ones(1))


@pytest.mark.parametrize("name", REFUSALS)
def test_a_corner_is_refused_in_pytorchs_words(name):
    with pytest.raises(Exception) as theirs:
        REFUSALS[name](torch)
    kind = next(one for one in theirs.type.__mro__ if one.__module__ == "builtins")
    with pytest.raises(kind) as ours:
        REFUSALS[name](backlight)
    words = " ".join(str(theirs.value).split())
    assert " ".join(str(ours.value).split()).startswith(words.split("; ")[0])


INTEGERS = [("uint8", "int32"), ("bool", "uint8"), ("float32", "int16"), ("int64", "bool"), ("int32", "float64")]


@pytest.mark.parametrize(("given", "wanted"), INTEGERS)
@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "cumsum", "cumprod"])
def test_a_reduction_is_in_the_dtype_asked_for(name, given, wanted):
    found = []
    for module in (backlight, torch):
        x = module.tensor([[3, 200], [7, 1]]).to(getattr(module, given))
        if wanted == "bool" and name.startswith("cum"):
            with pytest.raises(NotImplementedError, match=f"{name}_out_cpu.* not implemented for 'Bool'"):
                getattr(module, name)(x, 0, dtype=module.bool)
            continue
        found.append(getattr(module, name)(x, 0, dtype=getattr(module, wanted)))
    if found:
        assert_same(*found, 1e-6, 0)


def test_a_square_that_overflows_keeps_the_dtype():
    assert flat(backlight.std_mean(backlight.tensor([1e30, -1e30])))[0].dtype is backlight.float32
