"""Native convolutions are their NumPy references, at every level, in both types, for any sizes, groups and threads."""

import numpy as np
import pytest

from backlight.kernels.native import compiled
from backlight.kernels.nn import patches
from backlight.ops.nn.convolution_sizes import places_of

KINDS = (np.float32, np.float64)

# batch, channels in, out, sizes, kernel, padding, dilation, groups
CASES = [
    (1, 1, 4, (1, 1), (1, 3), (0, 1), (1, 1), 1),
    (3, 2, 10, (5, 7), (3, 3), (1, 1), (1, 1), 1),
    (2, 6, 8, (14, 14), (3, 3), (1, 1), (1, 1), 2),
    (2, 4, 6, (20, 33), (2, 5), (0, 2), (3, 2), 1),
    (1, 3, 5, (90, 70), (3, 3), (2, 0), (1, 1), 1),  # more rows than one thread takes at once
    (70, 3, 9, (16, 16), (5, 5), (2, 2), (1, 1), 1),  # more images than one thread takes at once
    (1, 40, 3, (6, 200), (3, 3), (1, 1), (1, 1), 1),
    (4, 3, 5, (50,), (7,), (3,), (2,), 1),
    (3, 7, 7, (14, 14), (3, 3), (1, 1), (1, 1), 7),  # a kernel for each channel
    (2, 3, 6, (9, 80), (5, 4), (2, 1), (1, 2), 3),
    (2, 1, 1, (30, 30), (5, 5), (2, 2), (1, 1), 1),
]


def arrays_of(case, kind):
    """Return input, weight, bias, the gradient of the output, and the options of a convolution."""
    batch, ins, outs, sizes, kernel, padding, dilation, groups = case
    ones = (1,) * len(sizes)
    places = places_of(sizes, kernel, ones, padding, dilation)
    rng = np.random.default_rng(0)
    shapes = [(batch, ins, *sizes), (outs, ins // groups, *kernel), (outs,), (batch, outs, *places)]
    return *[rng.normal(size=shape).astype(kind) for shape in shapes], ones, padding, dilation, groups, places


def near(found, expected, kind):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=64 * np.finfo(kind).eps * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_is_its_reference(level, case, kind):
    input, weight, bias, _, stride, padding, dilation, groups, places = arrays_of(case, kind)
    for added in (bias, None):
        given = (input, weight, added, stride, padding, dilation, groups, places)
        near(patches.convolve(*given), patches.convolve.__wrapped__(*given), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_for_the_weight_is_its_reference(level, case, kind):
    input, weight, _, grad, stride, padding, dilation, groups, _ = arrays_of(case, kind)
    given = (grad, input, weight.shape[2:], stride, padding, dilation, groups)
    near(patches.weight_gradient(*given), patches.weight_gradient.__wrapped__(*given), kind)


def test_strides_and_other_layouts_go_by_the_reference(level):
    input, weight, bias, _, _, padding, dilation, groups, _ = arrays_of(CASES[1], np.float32)
    places = places_of(input.shape[2:], weight.shape[2:], (2, 2), padding, dilation)
    given = (input, weight, bias, (2, 2), padding, dilation, groups, places)
    assert patches.convolve(*given).tobytes() == patches.convolve.__wrapped__(*given).tobytes()
    places = places_of(input.shape[:1:-1], weight.shape[2:], (1, 1), padding, dilation)
    given = (input.swapaxes(2, 3), weight, bias, (1, 1), padding, dilation, groups, places)
    near(patches.convolve(*given), patches.convolve(np.ascontiguousarray(given[0]), *given[1:]), np.float32)


def test_an_element_that_is_not_finite_reaches_the_places_that_see_it_only(level):
    input, weight, bias, _, stride, padding, dilation, groups, places = arrays_of(CASES[1], np.float32)
    for value in (np.nan, np.inf):
        input[1, 1, 2, 6] = value
        found = patches.convolve(input, weight, bias, stride, padding, dilation, groups, places)
        seen = np.zeros(found.shape, bool)
        seen[1, :, 1:4, 5:] = True
        assert (~np.isfinite(found) == seen).all()


@pytest.mark.parametrize("case", [CASES[4], CASES[5]])
def test_the_number_of_threads_changes_no_digit(level, case):
    input, weight, bias, grad, stride, padding, dilation, groups, places = arrays_of(case, np.float32)
    before, found = compiled.threads(), []
    for threads in (1, 2, 5):
        compiled.set_threads(threads)
        out = patches.convolve(input, weight, bias, stride, padding, dilation, groups, places)
        slope = patches.weight_gradient(grad, input, weight.shape[2:], stride, padding, dilation, groups)
        found.append((out.tobytes(), slope.tobytes()))
    compiled.set_threads(before)
    assert found[0] == found[1] == found[2]
