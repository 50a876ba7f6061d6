"""The old `spectral_norm`: a weight that is divided before each forward by its largest singular value.

`parametrizations.spectral_norm` is the newer one; this one keeps the names that old state dicts have, `weight_orig`,
`weight_u` and `weight_v`.
"""

from backlight.engine.grad_mode import no_grad
from backlight.errors import GraphError, ValueProblem
from backlight.linalg import multi_dot, pinv
from backlight.nn.functional import normalize
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.nn.utils.spectral import as_matrix, require_iterations, rows_of
from backlight.nn.utils.weight_norm import refuse_second, remove_hook
from backlight.tensor.tensor import Tensor

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook of one weight: sets it before each forward, and in training updates u and v by power iteration."""

    _version = 1  # of what a state dict holds: 1 has v beside u, and no weight

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        require_iterations(n_power_iterations)
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix: `dim` as rows, all other dims as columns."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return weight / uᵀ W v; u and v are copied, for the next call changes them before this one's backward."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.mT.mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for part in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def mark_state(self, module: Module, state_dict: dict, prefix: str, local_metadata: dict) -> None:
        """Write the layout version into a state dict's metadata."""
        versions, key = local_metadata.setdefault("spectral_norm", {}), f"{self.name}.version"
        if key in versions:
            raise GraphError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self._version

    def update_state(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Add v to a state dict from before version 1, which has the weight instead."""
        version, key = local_metadata.get("spectral_norm", {}).get(f"{self.name}.version"), prefix + self.name
        if version is not None and version >= 1:
            return
        if (
            version is None
            and key not in state_dict
            and all(key + part in state_dict for part in ("_orig", "_u", "_v"))
        ):
            return  # made by hand: the newest, without metadata
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            weight = state_dict[f"{key}_orig"]
            sigma = (weight / state_dict.pop(key)).mean()
            matrix, u = self.reshape_weight_to_matrix(weight), state_dict[f"{key}_u"]
            v = multi_dot([pinv(matrix.t().mm(matrix)), matrix.t(), u.unsqueeze(1)]).squeeze(1)
            state_dict[f"{key}_v"] = v * (sigma / u.dot(matrix.mv(v)))

    def __call__(self, module: Module, inputs: tuple) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value before each forward.

    Args:
        dim: the dim of the weight that becomes the rows of its matrix; 1 for transposed convolutions, else 0.

    Source: Takeru Miyato, Toshiki Kataoka, Masanori Koyama, Yuichi Yoshida: Spectral Normalization for Generative
    Adversarial Networks, 2018, arXiv:1802.05957
    """
    dim = rows_of(module) if dim is None else dim
    refuse_second(module, SpectralNorm, name, "spectral_norm")
    hook, weight = SpectralNorm(name, n_power_iterations, dim, eps), module._parameters[name]
    if weight is None:
        raise ValueProblem(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with no_grad():
        sizes = hook.reshape_weight_to_matrix(weight).shape
        u, v = (normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in sizes)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.mark_state)
    module._register_load_state_dict_pre_hook(hook.update_state)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight an ordinary parameter again, with its current value.

    Raises:
        ValueError: there is no such hook.
    """
    return remove_hook(module, SpectralNorm, name, "spectral_norm")
