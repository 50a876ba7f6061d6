"""The gradient of Dirichlet numbers with respect to their concentrations, through that of Beta numbers.

Source: Jankowiak and Obermeyer, Pathwise derivatives beyond the reparameterization trick, arXiv:1806.01851.
"""

import numpy as np

from backlight.kernels.random.gamma import FLOAT64, by_cases
from backlight.kernels.special.erf import horner
from backlight.kernels.special.gamma import BERNOULLI
from backlight.kernels.state_blocks import silent_floats

_SERIES = tuple(b / (2 * k) for k, b in enumerate(BERNOULLI[:7], 1))[::-1]
_DIGAMMA_OF_10 = 2.25175258906672110764


def _digamma(x: np.ndarray) -> np.ndarray:
    """Return digamma of positive x, which is rounded where PyTorch's kernel rounds it to the dtype of x."""
    z = np.where(x > 0, x, x.dtype.type(np.nan))
    out = np.zeros(x.shape)
    while (short := z < 10).any():
        out -= np.where(short, 1 / z, 0)
        z = np.where(short, z + 1, z)
    inverse = 1 / (z * z).astype(FLOAT64)
    far = out + np.log(z) - (x.dtype.type(0.5) / z) - inverse * horner(_SERIES, inverse)
    found = np.where(z == 10, out + _DIGAMMA_OF_10, far)
    return np.where(x == 0, np.inf, found).astype(x.dtype)


def dirichlet_grad(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return −(∂F(x; α, β) / ∂α) / f(x; α, β) / (1 − x) of Beta numbers x, where β = total − α; arrays of one shape."""
    kind, shape = x.dtype, x.shape
    x, alpha, total = (np.ascontiguousarray(one).ravel() for one in (x, alpha, total))
    beta, boundary = total - alpha, total * x * (1 - x)
    everywhere = np.ones(x.shape, bool)
    with silent_floats():
        cases = [
            ((x <= 0.5) & (boundary < 2.5), lambda x, a, t: _by_alpha_near_zero(x, a, t - a)),
            ((x >= 0.5) & (boundary < 0.75), lambda x, a, t: -_by_beta_near_zero(1 - x, t - a, a)),
            ((alpha > 6) & (beta > 6), _saddle_point),
            (everywhere, _rational),
        ]
        return by_cases(cases, x, alpha, total).astype(kind).reshape(shape)


def _zero_for_nan(out: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(out), out.dtype.type(0), out)


def _by_alpha_near_zero(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Differentiate the series of F at x = 0 by α."""
    factor = _digamma(alpha) - _digamma(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = term / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term = term * ((i - beta) * x / i)
        denominator = alpha + i
        series = series + term / denominator * (factor + 1 / denominator)
    return _zero_for_nan(x * (1 - x) ** -beta * series)


def _by_beta_near_zero(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Differentiate the series of F at x = 0 by β."""
    factor = _digamma(alpha + beta) - _digamma(beta)
    term, product, slope, series = np.ones_like(x), np.ones_like(x), np.zeros_like(x), factor / alpha
    for i in range(1, 9):
        term = term * (-x / i)
        slope = slope * (beta - i) + product
        product = product * (beta - i)
        series = series + term / (alpha + i) * (slope + factor * product)
    return _zero_for_nan(-((1 - x) ** (1 - beta)) * series)


def _saddle_point(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Expand for large α and β, about the mean where the formula has a removable singularity."""
    x, alpha, total = (array.astype(FLOAT64) for array in (x, alpha, total))
    beta = total - alpha
    mean = alpha / total
    deviation = np.sqrt(alpha * beta / (total + 1)) / total
    near = (mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation)
    return np.where(near, _near_mean(x, alpha, beta), _off_mean(x, alpha, beta))


def _near_mean(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    total, square = alpha + beta, beta * beta
    fourth = 8 * (1 - x) * (135 * beta - 11)
    third = (453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * fourth
    second = 3 * (59 + 180 * beta - 90 * x) * square + alpha * third
    first = (43 + 20 * (16 + 27 * beta) * x) * square * beta + alpha * second
    polynomial = 47 * x * square * square + alpha * first
    above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    below = 12960 * alpha * alpha * alpha * beta * beta * (1 + 12 * total)
    return above / (1 - x) * polynomial / below


def _stirling(z: np.ndarray) -> np.ndarray:
    return 1 + 1 / (12 * z) + 1 / (288 * z * z)


def _off_mean(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    total = alpha + beta
    factor = -x / np.sqrt(2 * alpha * beta / total)
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    distance = alpha * (x - 1) + beta * x
    first = 2 * (alpha * alpha) * (x - 1) + alpha * beta * (x - 1) - x * (beta * beta)
    first = first / (np.sqrt(2 * alpha / beta) * total**1.5 * distance * distance)
    half_log = 0.5 * np.log(alpha / (total * x))
    pole = np.sqrt(8 * alpha * beta / total) / distance
    tail = (beta * np.log(beta / (total * (1 - x))) + alpha * np.log(alpha / (total * x))) ** -1.5
    return stirling * factor * (first + half_log * (pole + np.where(x < alpha / total, tail, -tail)))


# coefficients of u^i · a^j · b^k, u = log x, a = log α − u, b = log total − a, of numerator and denominator
_RATIONAL = np.array(
    [
        [
            [
                [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
                [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
                [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
            ],
            [
                [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
                [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
                [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05],
            ],
            [
                [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
                [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
                [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05],
            ],
        ],
        [
            [
                [1, -0.02924021934, -0.04438342661, 0.007285809825],
                [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
                [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
            ],
            [
                [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
                [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
                [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05],
            ],
            [
                [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
                [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
                [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06],
            ],
        ],
    ]
)


def _rational(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Correct x · (ψ(total) − ψ(α)) / β by a quotient of polynomials."""
    difference = _digamma(total).astype(FLOAT64) - _digamma(alpha)
    x, alpha, total = (array.astype(FLOAT64) for array in (x, alpha, total))
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    sums = []
    for table in _RATIONAL:
        value = np.zeros_like(x)
        for i in range(3):
            for j in range(3):
                row = table[i, j]
                value = value + u**i * a**j * (row[0] + b * (row[1] + b * (row[2] + b * row[3])))
        sums.append(value)
    approximate = x * difference / (total - alpha)
    return sums[0] / sums[1] * approximate
