"""Convolutions, plain and transposed, in one to three dims."""

from case import Case, normal

LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (4e-2, 4e-2)}


def conv(name, **options):
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, **options)


CASES = [
    Case("convolution/1d", conv("conv1d"), [normal(2, 3, 6), normal(4, 3, 2), normal(4)], tolerance=LOOSE),
    Case(
        "convolution/2d",
        conv("conv2d", stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
        [normal(2, 2, 5, 6), normal(3, 2, 3, 2), normal(3)],
        tolerance=LOOSE,
    ),
    Case("convolution/pointwise", conv("conv2d"), [normal(2, 3, 2, 3), normal(2, 3, 1, 1)], tolerance=LOOSE),
    Case("convolution/same", conv("conv2d", padding="same"), [normal(1, 2, 3, 4), normal(2, 2, 1, 3)], tolerance=LOOSE),
    Case(
        "convolution/groups",
        conv("conv2d", groups=2, padding=1),
        [normal(1, 4, 3, 3), normal(4, 2, 3, 3), normal(4)],
        tolerance=LOOSE,
    ),
    Case("convolution/unbatched", conv("conv2d"), [normal(2, 4, 3), normal(3, 2, 2, 2)], tolerance=LOOSE),
    Case("convolution/3d", conv("conv3d", stride=2), [normal(1, 2, 3, 4, 3), normal(2, 2, 2, 2, 1)], tolerance=LOOSE),
    Case(
        "convolution/transposed1d",
        conv("conv_transpose1d", stride=3, padding=1, output_padding=2),
        [normal(2, 2, 4), normal(2, 3, 3), normal(3)],
        tolerance=LOOSE,
    ),
    Case(
        "convolution/transposed2d",
        conv("conv_transpose2d", groups=2, dilation=2, output_padding=1),
        [normal(1, 4, 2, 3), normal(4, 2, 2, 2), normal(4)],
        tolerance=LOOSE,
    ),
    Case(
        "convolution/transposed3d",
        conv("conv_transpose3d", padding=1, stride=2),
        [normal(1, 2, 2, 2, 3), normal(2, 1, 3, 2, 3)],
        tolerance=LOOSE,
    ),
    Case(
        "convolution/general",
        lambda t, x, w: t.convolution(x, w, None, (2,), (1,), (1,), True, (1,), 1),
        [normal(1, 2, 3), normal(2, 2, 3)],
        tolerance=LOOSE,
    ),
    Case(
        "im2col",
        conv("unfold", kernel_size=(2, 3), dilation=(2, 1), padding=1, stride=2),
        [normal(2, 2, 4, 3)],
    ),
    Case("col2im", conv("fold", output_size=(3, 4), kernel_size=2, padding=(1, 0)), [normal(2, 8, 12)]),
    Case("pixel_shuffle", lambda t, x: t.pixel_shuffle(x, 2), [normal(2, 8, 2, 3)], integer=True),
    Case("pixel_unshuffle", lambda t, x: t.pixel_unshuffle(x, 2), [normal(2, 2, 4, 6)], integer=True),
    Case("channel_shuffle", lambda t, x: t.channel_shuffle(x, 2), [normal(2, 6, 3)], integer=True),
]
