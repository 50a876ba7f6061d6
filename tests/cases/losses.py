"""Losses."""

from case import Case, Input, away_from, given, integers, normal, uniform

import backlight.nn.functional  # noqa: F401 - so that `t.nn.functional` is there

WIDE = ("float64", "float32")  # PyTorch has no others for these
REDUCTIONS = ("mean", "sum", "none")
SIGNS = Input(lambda rng: rng.choice([-1.0, 1.0], (3, 4)), differentiable=False)
SIGNS_OF_ROWS = Input(lambda rng: rng.choice([-1.0, 1.0], 3), differentiable=False)
COUNTS = Input(lambda rng: rng.integers(0, 5, (3, 4)).astype(float), differentiable=False)
CLASS_WEIGHTS = Input(lambda rng: rng.uniform(0.5, 1.5, 4), differentiable=False)


def fixed(one: Input) -> Input:
    """Return the same input, not differentiated."""
    return Input(one.draw, differentiable=False)


def loss(name, function, inputs, reductions=REDUCTIONS, more=None, **options):
    """Return a Case for each reduction of a loss."""

    def call(reduction):
        def run(t, *tensors):
            return getattr(t.nn.functional, function)(*tensors, reduction=reduction, **(more or {}))

        return run

    return [Case(f"{name} {one}", call(one), inputs, **options) for one in reductions]


def by_classes(name, shape, target, **more):
    """Return Cases of cross_entropy with a weight for each of four classes."""

    def call(reduction):
        def run(t, x, y, w):
            return t.nn.functional.cross_entropy(x, y, w, reduction=reduction, **more)

        return run

    return [Case(f"{name} {one}", call(one), [normal(*shape), target, CLASS_WEIGHTS]) for one in REDUCTIONS]


PAIR = [normal(3, 4), normal(3, 4)]
SHARES = uniform(3, 4, low=0.05, high=0.95)

CASES = [
    *by_classes("cross_entropy/classes,", (3, 4), given([1, 3, 0])),
    *by_classes("cross_entropy/ignored,", (3, 4), given([1, -100, 0])),
    *by_classes("cross_entropy/one row,", (4,), given(2)),
    *by_classes("cross_entropy_2d/maps,", (2, 4, 3), integers(2, 3, high=4), ignore_index=1),
    *by_classes("smoothed_cross_entropy/classes,", (3, 4), given([1, -100, 0]), label_smoothing=0.1),
    *by_classes("smoothed_cross_entropy/maps,", (2, 4, 3), integers(2, 3, high=4), label_smoothing=0.2),
    *by_classes("log_softmax/cross_entropy, shares,", (3, 4), SHARES),
    *by_classes("log_softmax/cross_entropy, smoothed shares,", (3, 4), SHARES, label_smoothing=0.1),
    *loss("nll_loss/classes,", "nll_loss", [normal(3, 4), given([1, 3, 0]), CLASS_WEIGHTS]),
    *loss("spread_over_classes/nll_loss, ignored,", "nll_loss", [normal(3, 4), given([1, -100, 0])]),
    *loss("nll_loss2d/maps,", "nll_loss", [normal(2, 4, 3), integers(2, 3, high=4)]),
    *loss("take_of_classes/nll_loss, many dims,", "nll_loss", [normal(2, 4, 3, 2), integers(2, 3, 2, high=4)]),
    *loss("mse_loss/", "mse_loss", PAIR),
    Case("mse_loss/weighted", lambda t, x, y, w: t.nn.functional.mse_loss(x, y, weight=w), [*PAIR, normal(3, 4)]),
    *loss("abs/l1_loss", "l1_loss", [normal(3, 4), normal(3, 4, shift=3.0)]),
    *loss("smooth_l1_loss/", "smooth_l1_loss", PAIR, more={"beta": 0.7}),
    *loss("huber_loss/", "huber_loss", PAIR, more={"delta": 0.7}),
    *loss("binary_cross_entropy/", "binary_cross_entropy", [SHARES, SHARES, fixed(normal(4))]),
    *loss(
        "binary_cross_entropy_with_logits/",
        "binary_cross_entropy_with_logits",
        [normal(3, 4), SHARES],
    ),
    *loss(
        "binary_cross_entropy_with_logits/weighted",
        "binary_cross_entropy_with_logits",
        [normal(3, 4), SHARES, fixed(uniform(4, low=0.5, high=2.0))],
    ),
    Case(
        "binary_cross_entropy_with_logits/positives weighted",
        lambda t, x, y, w: t.nn.functional.binary_cross_entropy_with_logits(x, y, pos_weight=w),
        [normal(3, 4), SHARES, fixed(uniform(4, low=0.5, high=2.0))],
    ),
    *loss("xlogy/kl_div", "kl_div", [normal(3, 4), SHARES], ("batchmean", "sum", "none")),
    *loss("exp/kl_div, log target,", "kl_div", PAIR, ("batchmean", "sum", "none"), more={"log_target": True}),
    *loss("exp/poisson_nll_loss", "poisson_nll_loss", [normal(3, 4), COUNTS], more={"full": True}),
    *loss("log/poisson_nll_loss", "poisson_nll_loss", [SHARES, COUNTS], more={"log_input": False}),
    *loss("log/gaussian_nll_loss", "gaussian_nll_loss", [*PAIR, uniform(3, low=0.5, high=2.0)], more={"full": True}),
    *loss("soft_margin_loss/", "soft_margin_loss", [normal(3, 4), SIGNS]),
    *loss("where/hinge_embedding_loss", "hinge_embedding_loss", [away_from(3, 4, points=(1.0,)), SIGNS]),
    *loss(
        "clamp_min/margin_ranking_loss",
        "margin_ranking_loss",
        [normal(3, 4), normal(3, 4, shift=3.0), SIGNS],
        more={"margin": 0.5},
    ),
    *loss("where/cosine_embedding_loss", "cosine_embedding_loss", [*PAIR, SIGNS_OF_ROWS], more={"margin": 0.1}),
    *loss("clamp_min/triplet_margin_loss", "triplet_margin_loss", [*PAIR, normal(3, 4)], more={"margin": 4.0}),
    *loss("minimum/triplet_margin_loss, swapped,", "triplet_margin_loss", [*PAIR, normal(3, 4)], more={"swap": True}),
    *loss(
        "clamp_min/triplet_margin_with_distance_loss",
        "triplet_margin_with_distance_loss",
        [*PAIR, normal(3, 4)],
        more={"margin": 4.0},
    ),
    *loss("logsigmoid/multilabel_soft_margin_loss", "multilabel_soft_margin_loss", [normal(3, 4), fixed(SHARES)]),
    *(
        Case(
            f"gather/multi_margin_loss {p}",
            lambda t, x, y, w, p=p: t.nn.functional.multi_margin_loss(x, y, p, 0.7, w),
            [normal(3, 4), given([0, 3, 2]), CLASS_WEIGHTS],
            dtypes=WIDE,
        )
        for p in (1, 2)
    ),
    Case(
        "gather/multilabel_margin_loss",
        lambda t, x, y: t.nn.functional.multilabel_margin_loss(x, y),
        [normal(3, 4), given([[0, 2, -1, 1], [-1, 3, 2, 1], [0, 1, 2, 3]])],
        dtypes=WIDE,
    ),
    *(
        Case(
            f"ctc_loss/{reduction}",
            lambda t, x, y, reduction=reduction: t.nn.functional.ctc_loss(
                x.log_softmax(2), y, (5, 4), (2, 1), reduction=reduction
            ),
            [normal(5, 2, 4), given([[1, 1], [3, 2]])],
            dtypes=WIDE,
        )
        for reduction in REDUCTIONS
    ),
]
