"""Interpolation: every mode, with sizes and with factors."""

from case import Case, normal

CUBIC = {"float16": (8e-3, 8e-3), "bfloat16": (4e-2, 4e-2)}
PRECISE = ("float64", "float32")  # with antialiasing PyTorch has no others
EXACT = "_upsample_nearest_exact"


def resize(size=None, **options):
    return lambda t, x: t.nn.functional.interpolate(x, size, **options)


CASES = [
    Case("upsample_nearest1d", resize(5), [normal(2, 2, 3)]),
    Case("upsample_nearest2d", resize((5, 2)), [normal(2, 2, 3, 4)]),
    Case("upsample_nearest2d/factor", resize(scale_factor=1.7), [normal(2, 2, 3, 4)]),
    Case("upsample_nearest3d", resize((2, 3, 4)), [normal(1, 2, 3, 2, 2)]),
    Case(f"{EXACT}1d", resize(5, mode="nearest-exact"), [normal(2, 2, 3)]),
    Case(f"{EXACT}2d", resize(scale_factor=(1.5, 0.5), mode="nearest-exact"), [normal(2, 2, 3, 4)]),
    Case(f"{EXACT}3d", resize((2, 3, 4), mode="nearest-exact"), [normal(1, 2, 3, 2, 2)]),
    Case("upsample_linear1d", resize(5, mode="linear"), [normal(2, 2, 3)]),
    Case("upsample_linear1d/smaller", resize(2, mode="linear"), [normal(2, 2, 5)]),
    Case("upsample_bilinear2d", resize((5, 2), mode="bilinear"), [normal(2, 2, 3, 4)]),
    Case("upsample_bilinear2d/corners", resize((5, 2), mode="bilinear", align_corners=True), [normal(2, 2, 3, 4)]),
    Case("upsample_bilinear2d/factor", resize(scale_factor=1.7, mode="bilinear"), [normal(2, 2, 3, 4)]),
    Case(
        "upsample_bilinear2d/recomputed",
        resize(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        [normal(2, 2, 3, 4)],
    ),
    Case("upsample_trilinear3d", resize((2, 3, 4), mode="trilinear"), [normal(1, 2, 3, 2, 2)]),
    Case("upsample_bicubic2d", resize((5, 2), mode="bicubic"), [normal(2, 2, 3, 4)], tolerance=CUBIC),
    Case(
        "upsample_bicubic2d/corners",
        resize(6, mode="bicubic", align_corners=True),
        [normal(1, 2, 3, 4)],
        tolerance=CUBIC,
    ),
    Case(
        "_upsample_bilinear2d_aa",
        resize((3, 7), mode="bilinear", antialias=True),
        [normal(1, 2, 8, 4)],
        dtypes=PRECISE,
    ),
    Case(
        "_upsample_bicubic2d_aa", resize((3, 7), mode="bicubic", antialias=True), [normal(1, 2, 8, 4)], dtypes=PRECISE
    ),
    Case(
        "_upsample_lanczos2d_aa", resize((3, 7), mode="lanczos", antialias=True), [normal(1, 2, 8, 4)], dtypes=PRECISE
    ),
    Case("adaptive_avg_pool2d/area", resize((2, 3), mode="area"), [normal(1, 2, 5, 4)]),
]
