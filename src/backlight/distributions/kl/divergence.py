"""`kl_divergence`: it looks the formula up that is registered for the classes of two distributions, or their bases."""

import warnings
from collections.abc import Callable
from functools import total_ordering

from backlight.distributions.distribution import Distribution
from backlight.distributions.independent import Independent
from backlight.distributions.kl.across_families import ACROSS_FAMILIES
from backlight.distributions.kl.multivariate import MULTIVARIATE
from backlight.distributions.kl.same_family import SAME_FAMILY
from backlight.distributions.parameters import sum_rightmost
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.errors import ArgumentError, UnsupportedError
from backlight.tensor.tensor import Tensor

Formula = Callable[[Distribution, Distribution], Tensor]


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Return a decorator that registers what computes KL(p ‖ q) for distributions of two classes and their subclasses.

    Raises:
        TypeError: one of the two is no class.
    """
    for name, one in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(one, type):
            raise ArgumentError(f"Expected {name} to be a Distribution subclass but got {one}")

    def register(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _found_for.clear()
        return formula

    return register


@total_ordering
class _Match:
    """A pair of classes, ordered by inheritance: the first that differ decide."""

    def __init__(self, *types: type):
        self.types = types

    def __eq__(self, other: object) -> bool:
        return self.types == other.types

    def __le__(self, other: "_Match") -> bool:
        for one, another in zip(self.types, other.types):
            if not issubclass(one, another):
                return False
            if one is not another:
                break
        return True


def _dispatch_kl(type_p: type, type_q: type) -> Formula | None:
    """Return the formula of the nearest classes; where p's and q's nearest are of two pairs, that of p's."""
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None
    left_p, left_q = min(_Match(*pair) for pair in matches).types
    right_q, right_p = min(_Match(*reversed(pair)) for pair in matches).types
    if _KL_REGISTRY[left_p, left_q] is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left_p, left_q]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return KL(p ‖ q) = E[log p(x) − log q(x)] of x drawn from p, for each distribution of the batch.

    Raises:
        NotImplementedError: no formula is registered for the two classes.
    """
    pair = type(p), type(q)
    if pair not in _found_for:
        _found_for[pair] = _dispatch_kl(*pair)
    formula = _found_for[pair]
    if formula is None:
        raise UnsupportedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return formula(p, q)


def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError(
            "the KL divergence of two Independent needs the same reinterpreted_batch_ndims, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """A bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise UnsupportedError(
            "the KL divergence of two transformed distributions needs equal transforms and event shapes, got "
            f"{p.transforms} and {q.transforms}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


_KL_REGISTRY: dict[tuple[type, type], Formula] = {
    **SAME_FAMILY,
    **MULTIVARIATE,
    **ACROSS_FAMILIES,
    (Independent, Independent): _independent,
    (TransformedDistribution, TransformedDistribution): _transformed,
}
_found_for: dict[tuple[type, type], Formula | None] = {}
