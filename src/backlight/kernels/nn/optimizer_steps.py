"""Steps of optimizers: what one step does to a parameter's array, given its gradient and its state.

NOTE [Steps in one pass]
The NumPy references here go over memory once for each operation; the native kernels of the same names do all of a step
in one pass. Both write the parameter `values` and the state in place and leave the gradient alone. State that an
optimizer does not keep is None. `sign` is −1 to step along the gradient; `decay` times the parameter is added to it;
the parameter is first multiplied with `shrink`. What depends on the count of steps alone is computed by the optimizer.
"""

import numpy as np

from backlight.kernels.native import native


def _gradient(values: np.ndarray, grad: np.ndarray, sign: float, decay: float):
    """Return sign · grad + decay · values."""
    if sign != 1:
        grad = grad * sign
    return grad + decay * values if decay else grad


def _to_average(average: np.ndarray, value: np.ndarray, share: float) -> None:
    """Move a running average towards a value: average ← average + share · (value − average)."""
    average += share * (value - average)


def _to_average_of_squares(average: np.ndarray, value: np.ndarray, kept: float) -> None:
    """Take a square into a running average: average ← kept · average + (1 − kept) · value²."""
    average *= kept
    average += (1 - kept) * value * value


def _shrink(values: np.ndarray, factor: float) -> None:
    if factor != 1:
        values *= factor


@native
def sgd_step(values, grad, velocity, rate, momentum, share, nesterov, sign, decay) -> None:
    """Step by rate · g, or by the velocity.

    velocity ← momentum · velocity + share · g
    values ← values − rate · (g + momentum · velocity if nesterov else velocity)
    """
    grad = _gradient(values, grad, sign, decay)
    if velocity is not None:
        velocity *= momentum
        velocity += grad if share == 1 else share * grad
        grad = grad + momentum * velocity if nesterov else velocity
    np.subtract(values, rate * grad, out=values)


@native
def adam_step(values, grad, mean, square, largest, size, share, kept, eps, scale, shrink, sign, decay) -> None:
    """Step by the running mean over the root of the running square, or of the largest one so far.

    values ← shrink · values − size · mean / (scale · √square + eps)
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average(mean, grad, share)
    _to_average_of_squares(square, grad, kept)
    if largest is not None:
        square = np.maximum(largest, square, out=largest)
    _shrink(values, shrink)
    root = np.sqrt(square, out=np.empty_like(square))
    root *= scale
    root += eps
    np.divide(mean, root, out=root)
    root *= size
    values -= root


@native
def nadam_step(values, grad, mean, square, of_grad, of_mean, share, kept, eps, scale, shrink, sign, decay) -> None:
    """Step by the gradient and the running mean over the root of the running square.

    values ← shrink · values − (of_grad · g + of_mean · mean) / (scale · √square + eps)
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average(mean, grad, share)
    _to_average_of_squares(square, grad, kept)
    _shrink(values, shrink)
    values -= (of_grad * grad + of_mean * mean) / (np.sqrt(square) * scale + eps)


@native
def radam_step(values, grad, mean, square, size, share, kept, eps, rectified, shrink, sign, decay) -> None:
    """Step by the running mean, over the root of the running square once that can be trusted (`rectified` is not 0).

    values ← shrink · values − size · mean · (rectified / (√square + eps))
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average(mean, grad, share)
    _to_average_of_squares(square, grad, kept)
    _shrink(values, shrink)
    change = size * mean
    if rectified:
        change *= rectified / (np.sqrt(square) + eps)
    values -= change


@native
def adamax_step(values, grad, mean, largest, size, share, kept, eps, sign, decay) -> None:
    """Step by the running mean over a running maximum.

    largest ← max(kept · largest, |g| + eps)        values ← values − size · mean / largest
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average(mean, grad, share)
    largest *= kept
    np.maximum(largest, np.abs(grad) + eps, out=largest)
    values -= size * (mean / largest)


@native
def adagrad_step(
    values: np.ndarray, grad: np.ndarray, total: np.ndarray, rate: float, eps: float, sign: float, decay: float
) -> None:
    """Step by the gradient over the root of the sum of squares.

    total ← total + g²        values ← values − rate · g / (√total + eps)
    """
    grad = _gradient(values, grad, sign, decay)
    total += grad * grad
    values -= rate * (grad / (np.sqrt(total) + eps))


@native
def rmsprop_step(values, grad, square, velocity, mean, rate, kept, eps, momentum, sign, decay) -> None:
    """Step by the gradient over the root of the running square, less the running mean's square if that is kept.

    change = g / (√(square − mean²) + eps)
    velocity ← momentum · velocity + change        values ← values − rate · velocity
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average_of_squares(square, grad, kept)
    if mean is not None:
        _to_average(mean, grad, 1 - kept)
        square = square - mean * mean
    change = grad / (np.sqrt(square) + eps)
    if velocity is not None:
        velocity *= momentum
        velocity += change
        change = velocity
    values -= rate * change


@native
def adadelta_step(values, grad, square, steps, rate, kept, eps, sign, decay) -> None:
    """Step by the gradient times the ratio of the roots of two running averages.

    change = √(steps + eps) / √(square + eps) · g        values ← values − rate · change
    """
    grad = _gradient(values, grad, sign, decay)
    _to_average_of_squares(square, grad, kept)
    change = np.sqrt(steps + eps) / np.sqrt(square + eps) * grad
    _to_average_of_squares(steps, change, kept)
    values -= rate * change


@native
def asgd_step(values, grad, average, rate, shrink, share, sign, decay) -> None:
    """Step by the gradient, and take the parameter into its average.

    values ← shrink · values − rate · g        average ← average + share · (values − average)
    """
    grad = _gradient(values, grad, sign, decay)
    _shrink(values, shrink)
    values -= rate * grad
    if share == 1:
        np.copyto(average, values)
    else:
        _to_average(average, values, share)


@native
def rprop_step(values, grad, before, sizes, shrink, grow, smallest, largest, sign) -> None:
    """Step by sizes that grow where the gradient's sign stays and shrink where it turns; there the step is left out.

    values ← values − sign(g) · sizes
    """
    grad = np.array(grad * sign)
    turn = grad * before
    sizes *= np.where(turn > 0, grow, np.where(turn < 0, shrink, 1)).astype(sizes.dtype)
    np.clip(sizes, smallest, largest, out=sizes)
    grad[turn < 0] = 0
    values -= np.where(grad > 0, sizes, np.where(grad < 0, -sizes, sizes.dtype.type(0)))
    np.copyto(before, grad)


@native
def scale_in_place(values: np.ndarray, factor: float) -> None:
    """Multiply an array with a number, in place."""
    values *= factor


@native
def sum_of_squares(x: np.ndarray) -> float:
    """Return Σ x², taken in float64."""
    flat = np.asarray(x, np.float64).ravel()
    return float(flat @ flat)
