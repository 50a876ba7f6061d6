"""Pooling: windows and adaptive windows, the largest, the mean, and back."""

from case import Case, distinct, given, normal, uniform

POOL = {"bfloat16": (4e-2, 4e-2)}
NORM = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def pool(name, *args, **options):
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, *args, **options)


CASES = [
    Case("max_pool2d_with_indices", pool("max_pool2d", 2, return_indices=True), [distinct(2, 3, 4, 6)]),
    Case(
        "max_pool2d_with_indices/overlapping",
        pool("max_pool2d", (3, 2), stride=(1, 2), padding=(1, 0), dilation=(1, 2), ceil_mode=True),
        [distinct(1, 2, 4, 6)],
    ),
    Case("max_pool2d_with_indices/1d", pool("max_pool1d", 3, 2, padding=1), [distinct(2, 2, 7)]),
    Case("max_pool3d_with_indices", pool("max_pool3d", 2, ceil_mode=True), [distinct(2, 3, 2, 3)]),
    Case("avg_pool2d", pool("avg_pool2d", 2), [normal(2, 3, 4, 5)]),
    Case(
        "avg_pool2d/edges",
        pool("avg_pool2d", 3, 2, padding=1, ceil_mode=True, count_include_pad=False),
        [normal(1, 2, 6, 4)],
        tolerance=POOL,
    ),
    Case("avg_pool2d/divisor", pool("avg_pool2d", (2, 3), 1, divisor_override=4), [normal(2, 4, 5)], tolerance=POOL),
    Case("avg_pool2d/1d", pool("avg_pool1d", 3, 2, padding=1), [normal(2, 2, 6)]),
    Case(
        "avg_pool3d",
        pool("avg_pool3d", 2, 1, padding=1, ceil_mode=True),
        [normal(1, 2, 2, 3, 2)],
        dtypes=("float64", "float32"),
    ),
    Case("avg_pool2d/norm", pool("lp_pool2d", 3, 2), [uniform(1, 2, 4, 4, low=0.5, high=2)], tolerance=NORM),
    Case("adaptive_avg_pool2d", pool("adaptive_avg_pool2d", (2, None)), [normal(2, 2, 5, 3)], tolerance=POOL),
    Case("adaptive_avg_pool2d/one", pool("adaptive_avg_pool2d", 1), [normal(2, 2, 5, 3)]),
    Case("adaptive_avg_pool3d", pool("adaptive_avg_pool3d", 2), [normal(2, 3, 4, 3)], tolerance=POOL),
    Case("adaptive_max_pool2d", pool("adaptive_max_pool2d", 2, return_indices=True), [distinct(2, 2, 5, 3)]),
    Case("adaptive_max_pool2d/1d", lambda t, x: t.adaptive_max_pool1d(x, 3), [distinct(2, 2, 5)]),
    Case("adaptive_max_pool3d", pool("adaptive_max_pool3d", (2, 1, 2)), [distinct(1, 3, 2, 4)]),
    Case("max_unpool2d", pool("max_unpool2d", 2), [normal(1, 1, 1, 2), given([[[[3, 6]]]])]),
    Case("max_unpool2d/1d", pool("max_unpool1d", 2, output_size=(5,)), [normal(1, 1, 2), given([[[1, 4]]])]),
    Case("max_unpool3d", pool("max_unpool3d", 2), [normal(1, 1, 1, 2), given([[[[3, 14]]]])]),
    Case(
        "fractional_max_pool2d",
        lambda t, x, s: t.nn.functional.fractional_max_pool2d(x, 2, (3, 2), None, True, s.to(x.dtype)),
        [distinct(2, 2, 5, 6), given([[[0.25, 0.5], [0.875, 0.125]], [[0.0, 0.75], [0.5, 0.25]]])],
        dtypes=("float64", "float32"),
    ),
    Case(
        "fractional_max_pool3d",
        lambda t, x, s: t.nn.functional.fractional_max_pool3d(x, (2, 1, 2), (2, 3, 2), None, True, s.to(x.dtype)),
        [distinct(2, 4, 4, 4), given([[[0.25, 0.5, 0.75], [0.875, 0.125, 0.5]]])],
        dtypes=("float64", "float32"),
    ),
]
