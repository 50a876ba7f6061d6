"""Pruning of parameters, under PyTorch's names: pruned elements are multiplied by 0 before each forward."""

from collections.abc import Iterable

from backlight.errors import ArgumentError, ValueProblem
from backlight.nn.modules.module import Module
from backlight.nn.utils import pruning_methods as methods
from backlight.nn.utils.pruning_methods import *  # noqa: F403 - PyTorch has them here
from backlight.nn.utils.pruning_methods import (  # noqa: F401 - these, too
    _compute_norm,
    _compute_nparams_toprune,
    _validate_pruning_amount,
    _validate_pruning_amount_init,
    _validate_pruning_dim,
    _validate_structured_pruning,
)
from backlight.nn.utils.vectors import parameters_to_vector
from backlight.tensor.factories import ones_like
from backlight.tensor.tensor import Tensor

__all__ = [
    *methods.__all__,
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def identity(module: Module, name: str) -> Module:
    """Set up the mask of a parameter without pruning anything."""
    methods.Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune elements of a parameter, chosen at random.

    Args:
        amount: a fraction (float from 0 to 1) or a number (int) of elements.
    """
    methods.RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter with the smallest absolute values, or scores.

    As `random_unstructured` otherwise.

    Args:
        importance_scores: scores to compare instead of the parameter, of its shape.
    """
    methods.L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune channels along a dim of a parameter, chosen at random; see `random_unstructured`."""
    methods.RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the channels along a dim of a parameter with the smallest norm of order `n`; see `l1_unstructured`."""
    methods.LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is 0."""
    methods.CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable, pruning_method: type, importance_scores: dict | None = None, **kwargs
) -> None:
    """Prune elements of several parameters, chosen globally.

    Args:
        parameters: pairs (module, name).
        pruning_method: one that prunes single elements, such as `L1Unstructured`.
        importance_scores: scores to compare instead, for some of the pairs.
        kwargs: arguments of the method.

    Raises:
        TypeError: `parameters` is not iterable, or the method prunes channels.
    """
    if not isinstance(parameters, Iterable):
        raise ArgumentError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise ArgumentError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name) for module, name in parameters]
    given = parameters_to_vector([scores.get(pair, getattr(*pair)) for pair in pairs])
    own_masks = [getattr(module, name + "_mask", None) for module, name in pairs]
    masks = [ones_like(getattr(*pair)) if mask is None else mask for pair, mask in zip(pairs, own_masks)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    found = methods.PruningContainer(method).compute_mask(given, parameters_to_vector(masks))
    sizes = [getattr(*pair).numel() for pair in pairs]
    for (module, name), mask in zip(pairs, found.split(sizes)):
        custom_from_mask(module, name, mask.view_as(getattr(module, name)))


def remove(module: Module, name: str) -> Module:
    """Make pruning permanent: the parameter stays pruned, but its mask is removed.

    Raises:
        ValueError: the parameter is not pruned.
    """
    for key, method in methods.pruning_hooks(module).items():
        if method._tensor_name == name:
            method.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueProblem(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Tell whether a parameter of a module, or of a module inside it, is pruned."""
    return any(methods.pruning_hooks(inner) for inner in module.modules())
