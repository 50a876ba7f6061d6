"""Padding in all modes."""

from case import Case, normal


def padding(pad, mode):
    return lambda t, x: t.nn.functional.pad(x, pad, mode=mode)


CASES = [
    Case("constant_pad_nd", lambda t, x: t.nn.functional.pad(x, (1, 2)), [normal(2, 3)], integer=True),
    Case(
        "constant_pad_nd/value",
        lambda t, x: t.nn.functional.pad(x, (1, 0, 0, 2), value=2),
        [normal(2, 3)],
        integer=True,
    ),
    Case("constant_pad_nd/negative", lambda t, x: t.constant_pad_nd(x, (-1, 2, 1, -1), 0.5), [normal(2, 3)]),
    Case("constant_pad_nd/nothing", lambda t, x: t.nn.functional.pad(x, ()), [normal(2, 3)]),
    Case("reflection_pad1d", padding((2, 1), "reflect"), [normal(2, 3)]),
    Case("reflection_pad2d", padding((2, 1, 0, 2), "reflect"), [normal(2, 3, 4)]),
    Case("reflection_pad3d", padding((1, 1, 0, 1, 1, 0), "reflect"), [normal(1, 2, 2, 3)]),
    Case("replication_pad1d", padding((2, 4), "replicate"), [normal(2, 3)]),
    Case("replication_pad1d/negative", padding((-1, 2), "replicate"), [normal(2, 3)]),
    Case("replication_pad2d", padding((2, 1, 0, 3), "replicate"), [normal(2, 3, 4)]),
    Case("replication_pad3d", padding((1, 1, 0, 1, 1, 0), "replicate"), [normal(1, 2, 2, 3)]),
    Case("circular_pad1d", padding((2, 3), "circular"), [normal(2, 3)]),
    Case("circular_pad2d", padding((2, 1, 0, 3), "circular"), [normal(2, 3, 4)]),
    Case("circular_pad3d", padding((1, 1, 0, 1, 1, 0), "circular"), [normal(1, 2, 2, 3)]),
]
