"""`Constraint`, the base of all constraints, those that depend on other variables, and those made of another one."""

from collections.abc import Callable

from backlight.distributions.parameters import require
from backlight.errors import MissingMethodError, ValueProblem
from backlight.tensor.tensor import Tensor


class Constraint:
    """A region in which a variable is valid, such as one in which it can be optimised.

    Attributes:
        is_discrete: whether the region is a set of separate values.
        event_dim: how many of the last dims make up one value.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a bool for each value of the batch: whether it lies in the region."""
        raise MissingMethodError(f"{type(self).__name__} has no check(value): write one")

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other variables."""

    def __init__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise MissingMethodError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise MissingMethodError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented):
        """Return such a constraint of which more is known."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueProblem("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Constraint) -> bool:
    """Tell whether a constraint depends on other variables, so that it cannot be checked alone."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint of the instance; of the class, a constraint that depends on other variables."""

    def __init__(
        self,
        fn: Callable | None = None,
        *,
        is_discrete: bool = NotImplemented,
        event_dim: int = NotImplemented,
    ):
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable):
        """Decorate the method that computes the constraint."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def all_of_last(checks: Tensor, kept_dims: int) -> Tensor:
    """Return whether all hold along the dims after the first `kept_dims`."""
    return checks.reshape((*checks.shape[:kept_dims], -1)).all(-1)


def _check_base(constraint: Constraint) -> None:
    kind = type(constraint).__name__
    require(isinstance(constraint, Constraint), f"base_constraint must be a Constraint, got {kind}")


class _IndependentConstraint(Constraint):
    """A constraint that holds if another one does for all parts of a value along the last dims of the batch."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        require(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        require(
            isinstance(reinterpreted_batch_ndims, int),
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}",
        )
        require(
            reinterpreted_batch_ndims >= 0, f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        checks = self.base_constraint.check(value)
        if checks.dim() < self.reinterpreted_batch_ndims:
            raise ValueProblem(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return all_of_last(checks, checks.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """A constraint that adds the dim of the components before it checks with that of the components."""

    def __init__(self, base_constraint: Constraint):
        require(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        checks = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueProblem(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return all_of_last(checks, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
