"""Transforms that transform parts of a tensor, or slices of it, each in its own way."""

from collections.abc import Callable, Sequence

from backlight.distributions import constraints
from backlight.distributions.constraints import Constraint
from backlight.distributions.parameters import lazy_property, require, sum_rightmost
from backlight.distributions.transforms.transform import Transform
from backlight.ops.shape.joining import cat, stack
from backlight.tensor.tensor import Tensor


class _Several(Transform):
    """Transforms of parts along a dim."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        require(all(isinstance(one, Transform) for one in tseq), "All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [one.with_cache(cache_size) for one in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _check(self, value: Tensor, name: str, size: int, needed: str, kind: str = "tensor") -> None:
        dims = value.dim()
        require(-dims <= self.dim < dims, f"dim {self.dim} out of range for {kind} with {dims} dimensions")
        got = value.size(self.dim)
        require(got == size, f"{name}.size({self.dim}) = {got} must equal {needed} {size}")

    @property
    def bijective(self) -> bool:
        return all(one.bijective for one in self.transforms)


class CatTransform(_Several):
    """Transforms of parts that lie one after the other along a dim, of the given lengths."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        require(
            len(self.lengths) == len(self.transforms),
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})",
        )

    @lazy_property
    def event_dim(self) -> int:
        return max(one.event_dim for one in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size along the dim: the sum of the lengths."""
        return sum(self.lengths)

    def _remade(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _joined(self, name: str, value: Tensor, functions: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        self._check(value, name, self.length, "length")
        parts = value.split(self.lengths, self.dim)
        return cat([function(part) for function, part in zip(functions, parts)], dim=self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._joined("x", x, self.transforms)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._joined("y", y, [one.inv for one in self.transforms])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x, "x", self.length, "length", "x")
        self._check(y, "y", self.length, "length", "y")
        terms = []
        for one, before, after in zip(
            self.transforms, x.split(self.lengths, self.dim), y.split(self.lengths, self.dim)
        ):
            term = one.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, max(self.event_dim - one.event_dim, 0)))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([one.domain for one in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([one.codomain for one in self.transforms], self.dim, self.lengths)


class StackTransform(_Several):
    """Transforms of the slices along a dim, one for each."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    def _remade(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, name: str, value: Tensor) -> tuple[Tensor, ...]:
        self._check(value, name, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return stack([one(part) for part, one in zip(self._slices("x", x), self.transforms)], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return stack([one.inv(part) for part, one in zip(self._slices("y", y), self.transforms)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rows = zip(self._slices("x", x), self._slices("y", y), self.transforms)
        return stack([one.log_abs_det_jacobian(before, after) for before, after, one in rows], dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([one.domain for one in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([one.codomain for one in self.transforms], self.dim)
