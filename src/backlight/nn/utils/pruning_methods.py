"""Pruning methods, which compute masks, and the hook that applies a mask to a parameter.

NOTE [Pruned parameters]
A pruned parameter `weight` is stored in the module as the parameter `weight_orig` and the buffer `weight_mask`; before
each forward the method, a hook of the module, sets `weight` to their product. A parameter that is pruned again gets a
PruningContainer, in which each method prunes elements that the previous ones left.
"""

from abc import ABC, abstractmethod
from numbers import Integral, Real

from backlight.errors import ArgumentError, DimError, ValueProblem
from backlight.nn.modules.module import Module
from backlight.tensor.factories import ones_like, zeros_like
from backlight.tensor.random_factories import rand, rand_like
from backlight.tensor.tensor import Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
]


class BasePruningMethod(ABC):
    """Computes the mask of a parameter (see NOTE [Pruned parameters])."""

    _tensor_name: str

    def __call__(self, module: Module, inputs: tuple) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`, of the shape of the scores `t`, with the elements that this method prunes set to 0."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned parameter."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args, importance_scores: Tensor | None = None, **kwargs):
        """Prune a parameter of a module, and return the method, which is now its hook.

        Args:
            args, kwargs: arguments of the method.
            importance_scores: scores to compare instead of the parameter.

        Raises:
            AssertionError: the scores have another shape than the parameter.
        """
        previous = _take_hook(module, name)
        method = _after(previous, cls(*args, **kwargs), name)
        original = getattr(module, name)
        _require_shape(importance_scores, original, f"parameter {name} of {module}")
        if previous is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            mask = ones_like(original)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        try:
            found = method.compute_mask(original if importance_scores is None else importance_scores, default_mask=mask)
        except Exception:
            if previous is None:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        module.register_buffer(name + "_mask", found)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a pruned version of a tensor, without a module.

        Raises:
            AssertionError: the scores have another shape.
        """
        _require_shape(importance_scores, t, "tensor t")
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the masked parameter an ordinary one again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def pruning_hooks(module: Module) -> dict:
    """Return the methods that prune parameters of a module, by the keys of its hooks."""
    if not isinstance(module, Module):
        kind = type(module).__name__
        raise ArgumentError(f"'{kind}' object has no attribute '_forward_pre_hooks': what is pruned must be a Module")
    hooks = {} if module._hooks is None else module._forward_pre_hooks
    return {key: hook for key, hook in hooks.items() if isinstance(hook, BasePruningMethod)}


def _take_hook(module: Module, name: str) -> BasePruningMethod | None:
    """Remove the method that prunes a parameter, and return it; None if there is none."""
    for key, method in pruning_hooks(module).items():
        if method._tensor_name == name:
            del module._forward_pre_hooks[key]
            return method
    return None


def _after(previous: BasePruningMethod | None, method: BasePruningMethod, name: str) -> BasePruningMethod:
    """Return a container of several methods."""
    method._tensor_name = name
    if previous is None:
        return method
    container = previous if isinstance(previous, PruningContainer) else PruningContainer(previous)
    container.add_pruning_method(method)
    return container


def _require_shape(scores: Tensor | None, tensor: Tensor, what: str) -> None:
    if scores is not None and scores.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs {tensor.shape}"
        )


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, each of which prunes elements that the previous ones left."""

    def __init__(self, *methods: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(methods) == 1:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter.

        Raises:
            TypeError: it is not a pruning method.
            ValueError: it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueProblem(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index: int):
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask after the last method has pruned the elements left in it."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(t.dtype)
        mask = mask.clone() if mask is default_mask else mask
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


def _left(method: BasePruningMethod, t: Tensor, mask: Tensor):
    """Return the index of the unpruned part of a mask: elements, full channels, or everything."""
    kind = getattr(method, "PRUNING_TYPE", None)
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * t.ndim
    if kind != "structured":
        raise ValueProblem(f"Unrecognized PRUNING_TYPE {kind}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.ndim if method.dim < 0 else method.dim
    if dim < 0:
        raise DimError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
    return _along(t, dim, mask.sum(dim=[other for other in range(t.ndim) if other != dim]) != 0)


def _along(t: Tensor, dim: int, index: int) -> tuple:
    """Return the index of positions along one dim."""
    places: list = [slice(None)] * t.ndim
    places[dim] = index
    return tuple(places)


class Identity(BasePruningMethod):
    """Prune nothing: set up the mask only."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prune single elements, `amount` of them: a share or a number."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _compute_nparams_toprune(self.amount, t.numel())
        _validate_pruning_amount(count, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self.chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prune single elements, chosen at random."""

    def chosen(self, t: Tensor, count: int) -> Tensor:
        """Return the indices of `count` elements to prune."""
        return rand_like(t).view(-1).topk(count).indices


class L1Unstructured(_Unstructured):
    """Prune the elements with the smallest absolute values."""

    def chosen(self, t: Tensor, count: int) -> Tensor:
        """Return the indices of `count` elements to prune."""
        return t.abs().view(-1).topk(count, largest=False).indices


class _Structured(BasePruningMethod):
    """Prune full channels, `amount` of those along `dim`."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        kept = self.kept(t, size, count)
        if count == 0:
            return default_mask
        mask = zeros_like(t)
        mask[_along(t, self.dim, kept)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prune full channels, chosen at random."""

    def __init__(self, amount: int | float, dim: int = -1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def kept(self, t: Tensor, size: int, count: int) -> Tensor | None:
        """Return which channels are kept."""
        if count == 0:
            return None
        drawn = rand(size)
        return drawn > drawn.kthvalue(count).values


class LnStructured(_Structured):
    """Prune the channels with the smallest norm of order `n`."""

    def __init__(self, amount: int | float, n: float | str, dim: int = -1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def kept(self, t: Tensor, size: int, count: int) -> Tensor:
        """Return which channels are kept."""
        return _compute_norm(t, self.n, self.dim).topk(size - count).indices


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def _validate_pruning_amount_init(amount: float) -> None:
    if not isinstance(amount, Real):
        raise ArgumentError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, Integral) and amount > 1.0):
        raise ValueProblem(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """Raise if a number of units is larger than what there is; a share fits always."""
    if isinstance(amount, Integral) and amount > tensor_size:
        raise ValueProblem(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.ndim <= 1:
        raise ValueProblem(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.ndim} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.ndim:
        raise DimError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """Return how many of `tensor_size` units are pruned."""
    return amount if isinstance(amount, Integral) else round(amount * tensor_size)


def _compute_norm(t: Tensor, n: float | str, dim: int) -> Tensor:
    """Return the norms of order `n` of the channels along a dim."""
    own = range(t.ndim)[dim]
    return t.norm(p=n, dim=[other for other in range(t.ndim) if other != own])
