"""How gradients flow: the norm of each layer's gradient, and its share of the norm of the layer's weights."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Flow:
    """Gradients by layer, None where a layer had none.

    Args:
        norms: √Σg² over the layer's own parameters.
        ratios: that over √Σw²; None where all weights are zero.
    """

    norms: dict[str, float | None]
    ratios: dict[str, float | None]

    @property
    def total(self) -> float:
        """The norm of all gradients together."""
        return math.sqrt(sum(norm * norm for norm in self.norms.values() if norm is not None))


def layers_of(model) -> dict[str, list]:
    """Return the trained parameters of each module that has some of its own, by the module's dotted name."""
    layers: dict[str, list] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            layers.setdefault(name.rpartition(".")[0] or "model", []).append(parameter)
    return layers


def flow_of(layers: dict[str, list]) -> Flow:
    """Return the gradients that are there now."""
    norms, ratios = {}, {}
    for name, parameters in layers.items():
        reached = [parameter._grad._data for parameter in parameters if parameter._grad is not None]
        norms[name] = _norm(reached) if reached else None
        weight = _norm([parameter._data for parameter in parameters])
        ratios[name] = norms[name] / weight if reached and weight else None
    return Flow(norms, ratios)


def _norm(arrays: list) -> float:
    """Return √Σx² over several arrays: each array's sum in its own precision, the total in float64."""
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for array in arrays:
            flat = np.ravel(array)
            flat = flat if flat.dtype in (np.float32, np.float64) else flat.astype(np.float32)
            total += float(np.dot(flat, flat))
    return math.sqrt(total) if total == total else total
