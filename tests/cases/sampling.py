"""Sampling at the places of a grid, and affine grids."""

from case import Case, normal, uniform

HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}
WIDE = ("float64", "float32")


def sample(mode, padding_mode, align_corners):
    return lambda t, x, grid: t.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners)


CASES = [
    *(
        Case(
            f"grid_sampler_2d/{mode} {padding} {corners}",
            sample(mode, padding, corners),
            [normal(2, 2, 4, 5), uniform(2, 3, 2, 2, low=-1.4, high=1.4)],
            dtypes=WIDE,
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding, corners in (("zeros", False), ("border", True), ("reflection", False))
    ),
    *(
        Case(
            f"grid_sampler_3d/{mode} {padding}",
            sample(mode, padding, False),
            [normal(1, 2, 3, 4, 2), uniform(1, 2, 3, 1, 3, low=-1.4, high=1.4)],
            dtypes=WIDE,
        )
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
    ),
    Case(
        "affine_grid_generator",
        lambda t, x: t.nn.functional.affine_grid(x, (2, 1, 3, 4), align_corners=False),
        [normal(2, 2, 3)],
        tolerance=HALF,
    ),
    Case(
        "affine_grid_generator/volumes",
        lambda t, x: t.nn.functional.affine_grid(x, (2, 1, 3, 2, 4), align_corners=True),
        [normal(2, 3, 4)],
        tolerance=HALF,
    ),
]
