"""Native kernels of rows, channels and losses agree with their NumPy references, and with the float64 truth."""

import numpy as np
import pytest
from for_each import together

from backlight.kernels.loss import class_losses
from backlight.kernels.native import compiled
from backlight.kernels.nn import channels, row_norms
from backlight.kernels.nn import softmax as rows
from backlight.kernels.reduction import sorting

KINDS = (np.float32, np.float64)
SHAPES = [(0, 3), (1, 1), (3, 5), (7, 16), (2, 33), (64, 10), (5, 100), (300, 257), (1000, 64)]
WANTED = [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
PLANES = [(1, 2, 1), (3, 4, 1), (70, 130, 1), (2, 6, 5), (1, 4, 33), (4, 8, 300)]


@pytest.fixture(autouse=True)
def two_threads(level):
    threads = compiled.threads()
    compiled.set_threads(2)
    yield
    compiled.set_threads(threads)


def numbers(seed, shape, kind, scale=1.0, shift=0.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale + shift).astype(kind)


def close(found, expected, ulps=64, most=0):
    """Compare with a tolerance of `ulps` of each number, and of the largest number or of the largest term `most`."""
    if expected is None:
        assert found is None
        return
    assert found.dtype == expected.dtype and found.shape == expected.shape
    kind = np.finfo(expected.dtype)
    finite = expected[np.isfinite(expected)]
    most = max(np.abs(finite).max(), most) if finite.size else most
    np.testing.assert_allclose(found, expected, rtol=ulps * kind.eps, atol=ulps * kind.eps * most + kind.tiny)


def both(kernel, *args, ulps=64, most=0):
    """Call a kernel and its reference, compare, and return what the kernel found."""
    found, expected = kernel(*args), kernel.__wrapped__(*args)
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            close(one, other, ulps, most)
    else:
        close(found, expected, ulps, most)
    return found


def declines(kernel, *args):
    """Tell whether a kernel leaves these arguments to its reference: the result is bit for bit that of NumPy."""
    return np.array_equal(kernel(*args), kernel.__wrapped__(*args))


@together(kind=KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_and_its_logarithm_agree_with_their_references(shape, kind):
    x, grad = numbers(0, shape, kind, 4), numbers(1, shape, kind)
    both(rows.softmax_gradient, grad, both(rows.softmax, x, -1), -1)
    both(rows.log_softmax_gradient, grad, both(rows.log_softmax, x, 1), 1)


@together(kind=KINDS)
@pytest.mark.parametrize("size", [3, 16, 37, 200])
def test_softmax_bears_infinities_nan_and_huge_numbers(size, kind):
    x = numbers(2, (8, size), kind)
    x[0, 1], x[1, 0], x[2, 2], x[3], x[5, 0] = -np.inf, np.inf, np.nan, -np.inf, 1e30
    x[6], x[7] = np.finfo(kind).max / 2, np.finfo(kind).tiny / 4
    with np.errstate(all="ignore"):
        for kernel in (rows.softmax, rows.log_softmax):
            both(kernel, x, -1)
    found = rows.softmax(x, -1)
    assert np.isnan(found[1:4]).any(1).all() and np.isfinite(found[[0, 4, 5, 6, 7]]).all()


def test_log_softmax_keeps_the_digits_of_small_logarithms():
    x = np.array([[0, -30, -40, 1e4 * 0], [20, 0, 0, 0]], np.float32)
    wide = x.astype(np.float64)
    truth = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    np.testing.assert_allclose(rows.log_softmax(x, 1), truth, rtol=2e-6, atol=2e-7)


@together(kind=KINDS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_agree_with_their_references(shape, centred, kind):
    x, grad = numbers(3, shape, kind, 2, 1), numbers(4, shape, kind)
    weight, bias = numbers(5, shape[1:], kind), numbers(6, shape[1:], kind)
    for scale in (weight, None):
        for shift in (bias, None):
            _, mean, inverse = both(row_norms.normalised, x, shape[1], scale, shift, 1e-5, centred, ulps=256)
        most = np.abs(inverse).max(initial=0) * np.abs(grad).max(initial=0)
        for needs in WANTED:
            both(row_norms.normalised_gradients, grad, x, mean, inverse, scale, needs, ulps=256, most=most)


def test_a_norm_of_far_away_rows_keeps_its_digits():
    x = numbers(7, (4, 1000), np.float32, 1, 1000)
    wide = x.astype(np.float64)
    truth = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(row_norms.normalised(x, x.shape[1], None, None, 1e-5, True)[0], truth, atol=1e-4)


def test_gradients_of_weights_do_not_depend_on_the_number_of_threads():
    x, grad = numbers(8, (3000, 96), np.float32), numbers(9, (3000, 96), np.float32)
    _, mean, inverse = row_norms.normalised(x, x.shape[1], None, None, 1e-5, True)
    found = []
    for threads in (1, 2, 3):
        compiled.set_threads(threads)
        found.append(row_norms.normalised_gradients(grad, x, mean, inverse, None, (True, True, True)))
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others, strict=True))


@together(kind=KINDS, reduction=["mean", "sum", "none"], smoothing=[0.0, 0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy_agrees_with_its_reference(shape, smoothing, reduction, kind):
    x, weight = numbers(10, shape, kind, 3), np.abs(numbers(11, shape[1:], kind))
    weight[0] = 0
    targets = np.random.default_rng(12).integers(shape[1], size=shape[0])
    targets[::3] = -100
    for factors in (None, weight):
        args = x, targets, factors
        with np.errstate(all="ignore"):
            out, scales, shares = both(class_losses.class_losses, *args, -100, reduction, smoothing)
            grad = np.asarray(numbers(13, out.shape, kind))
            both(class_losses.class_gradients, grad.reshape(-1), *args, scales, shares, smoothing)


def test_cross_entropy_says_when_a_target_is_no_class():
    x = numbers(14, (3, 4), np.float32)
    for wrong in (4, -1):
        targets = np.array([0, wrong, -100])
        for kernel in (class_losses.class_losses, class_losses.class_losses.__wrapped__):
            assert kernel(x, targets, None, -100, "mean", 0.0) is None


def test_cross_entropy_keeps_the_digits_of_large_logits():
    x = numbers(15, (50, 20), np.float32, 1, 10000)
    targets = np.arange(50) % 20
    _, scales, shares = class_losses.class_losses(x, targets, None, -100, "sum", 0.0)
    wide = x.astype(np.float64)
    truth = np.exp(wide - wide.max(1, keepdims=True))
    truth /= truth.sum(1, keepdims=True)
    truth[np.arange(50), targets] -= 1
    found = class_losses.class_gradients(np.ones(1, np.float32), x, targets, None, scales, shares, 0.0)
    np.testing.assert_allclose(found, truth, atol=1e-6)


@together(kind=KINDS)
@pytest.mark.parametrize("shape", PLANES)
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_channel_norms_agree_with_their_references(shape, parts, kind):
    x, grad = numbers(16, shape, kind, 2, 1), numbers(17, shape, kind)
    weight, bias = numbers(18, shape[1], kind), numbers(19, shape[1], kind)
    if shape[0] * shape[2] == 1 and parts == 0:
        x = np.concatenate([x, x + 1])
        grad = np.concatenate([grad, grad])
    for scale, shift in ((weight, bias), (None, None), (weight, None), (None, bias)):
        found = both(channels.channels_normalised, x, scale, shift, parts, 1e-3, ulps=512)
        _, mean, inverse, _ = found
        both(channels.channels_scaled, x, mean, inverse, scale, shift, ulps=512)
        most = np.abs(inverse).max() * np.abs(grad).max() * 4
        for needs in WANTED:
            for fixed in (False, True):
                both(channels.channels_gradients, grad, x, mean, inverse, scale, fixed, needs, ulps=256, most=most)


@together(kind=KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (100, 40), (3000, 130), (10, 2, 3)])
def test_sums_by_index_agree_with_their_reference(shape, kind):
    values = numbers(20, shape, kind)
    index = np.random.default_rng(21).integers(0, 7, size=shape[0])
    both(sorting.sums_by_index, values, index, 9, ulps=256)


def test_rows_are_added_up_in_their_order():
    values = numbers(22, (500, 300), np.float32)
    index = np.random.default_rng(23).integers(0, 3, size=500)
    truth = np.zeros((3, 300), np.float32)
    for row, place in zip(values, index, strict=True):
        truth[place] += row
    assert np.array_equal(sorting.sums_by_index(values, index, 3), truth)


def test_an_index_beyond_the_table_is_refused():
    with pytest.raises(IndexError):
        sorting.sums_by_index(np.ones((2, 3), np.float32), np.array([0, 5]), 4)


def test_strided_rows_and_other_dims_are_left_to_the_references():
    x = numbers(24, (6, 40), np.float32)
    assert declines(rows.softmax, x[:, ::2], -1) and declines(rows.log_softmax, x, 0)
    found = row_norms.normalised(x[:, ::2], 20, None, None, 1e-5, True)[0]
    assert np.array_equal(found, row_norms.normalised.__wrapped__(x[:, ::2], 20, None, None, 1e-5, True)[0])


@pytest.mark.parametrize("size", [2103, 2064])
def test_results_too_large_for_the_caches_agree_with_their_references(size):
    x, grad = numbers(25, (1100, size), np.float32, 2, 1), numbers(26, (1100, size), np.float32)
    weight, bias = numbers(27, size, np.float32), numbers(28, size, np.float32)
    _, mean, inverse = both(row_norms.normalised, x, size, weight, bias, 1e-5, True, ulps=256)
    both(row_norms.normalised_gradients, grad, x, mean, inverse, weight, (True, True, True), ulps=512)
    targets = np.arange(1100) % size
    for smoothing in (0.0, 0.1):
        _, scales, shares = both(class_losses.class_losses, x, targets, weight, 3, "mean", smoothing, ulps=256)
        both(
            class_losses.class_gradients,
            np.ones(1, np.float32),
            x,
            targets,
            weight,
            scales,
            shares,
            smoothing,
            ulps=256,
        )
    images, slopes = x.reshape((11, 100, size)), grad.reshape((11, 100, size))
    _, mean, inverse, _ = both(channels.channels_normalised, images, None, bias[:100], 0, 1e-5, ulps=512)
    both(channels.channels_gradients, slopes, images, mean, inverse, None, False, (True, True, True), ulps=512)
