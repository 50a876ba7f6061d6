"""Transforms that lead from unconstrained numbers to those of a constraint: `biject_to` and `transform_to`.

    transform_to(constraints.positive)(x)    # exp(x)

A parameter that is optimised without constraints and then transformed satisfies its constraint. `biject_to` gives
bijective transforms, whose Jacobians matter to densities; `transform_to` gives cheap ones, which may be overdetermined.
"""

from collections.abc import Callable

from backlight.distributions import constraints, transforms
from backlight.distributions.constraints import Constraint
from backlight.distributions.parameters import Number
from backlight.distributions.transforms import Transform
from backlight.errors import ArgumentError, UnsupportedError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Constraint], Transform]


class ConstraintRegistry:
    """Makes transforms for constraints, by the constraints' classes."""

    def __init__(self, factories: dict[type, Factory] | None = None):
        self._registry = dict(factories or {})
        super().__init__()

    def register(self, constraint: Constraint | type, factory: Factory | None = None) -> Factory:
        """Register what makes a transform for constraints of a class; a decorator where no factory is given.

        Raises:
            TypeError: it is neither a constraint nor a class of constraints.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, Constraint):
            raise ArgumentError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Return a transform from unconstrained numbers to those of a constraint.

        Raises:
            NotImplementedError: none is registered for its class.
        """
        if type(constraint) not in self._registry:
            raise UnsupportedError(f"Cannot transform {type(constraint).__name__} constraints")
        return self._registry[type(constraint)](constraint)


def _to_real(constraint: Constraint) -> Transform:
    return transforms.identity_transform


def _to_above(constraint: Constraint) -> Transform:
    affine = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


def _to_below(constraint: Constraint) -> Transform:
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


def _to_interval(constraint: Constraint) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    affine = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), affine])


def _to_lower_cholesky(constraint: Constraint) -> Transform:
    return transforms.LowerCholeskyTransform()


def _to_positive_definite(constraint: Constraint) -> Transform:
    return transforms.PositiveDefiniteTransform()


def _to_corr_cholesky(constraint: Constraint) -> Transform:
    return transforms.CorrCholeskyTransform()


def _for_parts(registry: Callable[[], ConstraintRegistry]) -> dict[type, Factory]:
    """Return what makes transforms for constraints made of others, for each of which a registry has one."""

    def independent(constraint: Constraint) -> Transform:
        base = registry()(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def cat(constraint: Constraint) -> Transform:
        parts = [registry()(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def stack(constraint: Constraint) -> Transform:
        return transforms.StackTransform([registry()(part) for part in constraint.cseq], constraint.dim)

    return {constraints.independent: independent, constraints.cat: cat, constraints.stack: stack}


_BOTH = {
    type(constraints.real): _to_real,
    constraints.greater_than: _to_above,
    constraints.greater_than_eq: _to_above,
    constraints.less_than: _to_below,
    constraints.interval: _to_interval,
    constraints.half_open_interval: _to_interval,
    type(constraints.corr_cholesky): _to_corr_cholesky,
}
biject_to = ConstraintRegistry(
    _BOTH
    | _for_parts(lambda: biject_to)
    | {type(constraints.simplex): lambda constraint: transforms.StickBreakingTransform()}
)
transform_to = ConstraintRegistry(
    _BOTH
    | _for_parts(lambda: transform_to)
    | {
        type(constraints.simplex): lambda constraint: transforms.SoftmaxTransform(),
        type(constraints.lower_cholesky): _to_lower_cholesky,
        type(constraints.positive_definite): _to_positive_definite,
        type(constraints.positive_semidefinite): _to_positive_definite,
    }
)
