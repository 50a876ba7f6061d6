"""The old `weight_norm`: a weight that is computed before each forward from its length and direction.

`parametrizations.weight_norm` is the newer one; this one keeps the names that old state dicts have, `weight_g` and
`weight_v`.
"""

import warnings

from backlight.errors import GraphError, ValueProblem
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter, UninitializedParameter
from backlight.tensor.tensor import Tensor
from backlight.torch_api.aten_signatures import norm_except_dim

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook of one weight: sets it before each forward."""

    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return g · v / ‖v‖."""
        lengths, directions = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return directions * (lengths / norm_except_dim(directions, 2, self.dim))

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for part in "gv":
            del module._parameters[f"{self.name}_{part}"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: tuple) -> None:
        setattr(module, self.name, self.compute_weight(module))


def find_hook(module: Module, kind: type, name: str) -> int | None:
    """Return the key of a module's forward pre-hook of a class for a weight."""
    hooks = {} if module._hooks is None else module._forward_pre_hooks
    found = (key for key, hook in hooks.items() if isinstance(hook, kind) and hook.name == name)
    return next(found, None)


def remove_hook(module: Module, kind: type, name: str, what: str) -> Module:
    """Remove such a hook; the weight becomes an ordinary parameter."""
    key = find_hook(module, kind, name)
    if key is None:
        raise ValueProblem(f"{what} of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(key).remove(module)
    return module


def refuse_second(module: Module, kind: type, name: str, what: str) -> None:
    """Raise if a module already has such a hook for this weight, or the weight has no shape yet."""
    if find_hook(module, kind, name) is not None:
        raise GraphError(f"Cannot register two {what} hooks on the same parameter {name}")
    if isinstance(getattr(module, name, None), UninitializedParameter):
        raise ValueProblem(
            f"The module passed to `{kind.__name__}` can't have uninitialized parameters. Make sure to run the dummy "
            f"forward before applying {what.replace('_norm', '')} normalization"
        )


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight's norms along `dim` separately from its direction; `dim=None` uses one norm for the whole weight.

    Source: Tim Salimans, Diederik P. Kingma: Weight Normalization, 2016, arXiv:1602.07868
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    refuse_second(module, WeightNorm, name, "weight_norm")
    hook, weight = WeightNorm(name, dim), getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.detach(), 2, hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight an ordinary parameter again, with its current value.

    Raises:
        ValueError: there is no such hook.
    """
    return remove_hook(module, WeightNorm, name, "weight_norm")
