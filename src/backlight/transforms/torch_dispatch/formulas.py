"""What PyTorch's ops are composed of, and what their nodes compute, where ours differ: for `__torch_dispatch__` only.

A mode or a tensor class sees the calls that PyTorch makes below autograd. Most of our ops and rules make the same ones;
here are those that are one op in backlight and several in PyTorch, or the other way round.
"""

import math
from collections.abc import Callable, Sequence

from backlight.codegen.op_table import TENSOR_OPS as OPS
from backlight.codegen.runtime_support import check_saved
from backlight.dispatch.torch_dispatch import has_handler
from backlight.engine.node import Edge, Node
from backlight.engine.tensor_state import TensorState, wrap
from backlight.ops.aten import NAMED_REDUCTIONS, OpOverload
from backlight.transforms.torch_dispatch.calls import call

# --- ops --------------------------------------------------------------------------------------------------------------


def _rows(input: TensorState):
    shape = input._data.shape
    return input if len(shape) == 2 else OPS.view(input, (math.prod(shape[:-1]), shape[-1]))


def _cross_entropy(input: TensorState, target: TensorState, weight: TensorState | None, reduction: str, ignored: int):
    return OPS.nll_loss(OPS.log_softmax(input, 1), target, weight, reduction, ignored)


def _spread(input: TensorState, shape: Sequence[int], dims: int | Sequence[int] | None = None):
    if dims is not None and input._data.ndim < len(shape):
        for dim in sorted(one % len(shape) for one in ((dims,) if isinstance(dims, int) else dims)):
            input = OPS.unsqueeze(input, dim)
    return OPS.expand(input, tuple(shape))


def _sum_to_size(input: TensorState, size: Sequence[int]):
    shape, size = tuple(input._data.shape), tuple(size)
    added = len(shape) - len(size)
    dims = [*range(added), *(added + at for at, one in enumerate(size) if one == 1 and shape[added + at] != 1)]
    if not dims:
        return input
    total = OPS.sum(input, dims, True)
    return OPS.view(total, size) if added else total


def _index_backward(grad: TensorState, indices: Sequence[TensorState], dims: Sequence[int], shape: Sequence[int]):
    places = dict(zip(dims, indices))
    listed = [places.get(dim) for dim in range(max(dims) + 1)]
    return call(OpOverload("index_put"), OPS.new_zeros(grad, tuple(shape)), listed, grad, True)


# An op of ours -> what PyTorch has in its place
COMPOSED: dict[str, Callable] = {
    "cross_entropy": _cross_entropy,
    "index_backward": _index_backward,
    "kept": lambda input, mask: OPS.where(mask, input, wrap(input._data.dtype.type(0))),
    "linear_with_bias": lambda bias, input, weight: OPS.addmm(bias, _rows(input), OPS.t(weight)),
    "linear_without_bias": lambda input, weight: OPS.mm(_rows(input), OPS.t(weight)),
    "spread": _spread,
    "sum_to_size": _sum_to_size,
}


# --- derivatives ------------------------------------------------------------------------------------------------------


def _in_columns(factor: TensorState | object, edge: Edge) -> bool:
    """Tell whether a factor's columns lie side by side; of one that was not saved, whether it was transposed."""
    if not isinstance(factor, TensorState):
        return type(edge).__name__ == "TBackward0"
    return factor.stride() == (1, factor._data.shape[0])


def _to_factors(node: Node, grad: TensorState, left: str, right: str, wanted: Sequence) -> list:
    """Return the gradients of the factors of a product; of a factor that lies in columns as columns."""
    found: list = [None, None]
    sides = (0, 1) if left == "mat1" else (1, 0)  # in the order of PyTorch's names
    for side in sides:
        if wanted[side] is None:
            continue
        other = check_saved(node, (right, left)[side])
        columns = _in_columns(getattr(node, (left, right)[side]), wanted[side])
        if side == 0:
            found[0] = OPS.t(OPS.mm(other, OPS.t(grad))) if columns else OPS.mm(grad, OPS.t(other))
        else:
            found[1] = OPS.t(OPS.mm(OPS.t(grad), other)) if columns else OPS.mm(OPS.t(other), grad)
    return found


def _mm(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    return tuple(_to_factors(node, grad, "input", "mat2", edges))


def _addmm(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    if node.alpha != 1 or node.beta != 1:
        return node.backward_graph(grad, edges)
    factors = _to_factors(node, grad, "mat1", "mat2", edges[1:])
    return None if edges[0] is None else _sum_to_size(grad, node.input_shape), *factors


def _mean_all(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    shape = tuple(node.input_shape)
    return (call(OpOverload("div", "Scalar"), OPS.expand(grad, shape), math.prod(shape)),)


def _pow_number(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    input, exponent = check_saved(node, "input"), node.exponent
    if exponent == 0:
        return node.backward_graph(grad, edges)
    power = OPS.pow_number(input, float(exponent) - 1.0)
    return (OPS.mul(grad, call(OpOverload("mul", "Scalar"), power, float(exponent))),)


def _mse_loss_backward(grad: TensorState, input: TensorState, target: TensorState, reduction: int):
    count = input._data.size if reduction == 1 else 1
    return (input - target) * (grad * (2 / count))


def _mse_loss(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    pair, reduction = (check_saved(node, "input"), check_saved(node, "target")), NAMED_REDUCTIONS.index(node.reduction)
    func = OpOverload("mse_loss_backward", run=_mse_loss_backward)
    return tuple(
        None if edge is None else call(func, grad, *own, reduction) for edge, own in zip(edges, (pair, pair[::-1]))
    )


def _bce_with_logits(node: Node, grad: TensorState, edges: Sequence) -> tuple:
    usual = edges[1:] in ((), (None,)) and node.weight is None and node.pos_weight is None and node.reduction == "mean"
    if not usual:
        return node.backward_graph(grad, edges)
    input, target = check_saved(node, "input"), check_saved(node, "target")
    losses = OPS.mul(OPS.sub(OPS.sigmoid(input), target), grad)
    return call(OpOverload("div_", "Scalar"), losses, input._data.size), *(None for _ in edges[1:])


def _as_one(name: str, arguments: Callable[[Node], tuple]) -> Callable:
    """Return the formula of a node whose gradients PyTorch computes in one op, from the gradient and some arguments."""

    def formula(node: Node, grad: TensorState, edges: Sequence) -> tuple:
        if not isinstance(grad, TensorState) or has_handler(grad):
            return node.backward_graph(grad, edges)

        def run(grad: TensorState, *rest: object) -> tuple:
            found = node.backward(grad._data, edges, True)
            return tuple(None if one is None else wrap(one) for one in found)

        several = len(edges) > 1
        found = call(OpOverload(name, run=run if several else lambda *args: run(*args)[0]), grad, *arguments(node))
        return tuple(found) if several else (found,)

    return formula


def _of(*names: str) -> Callable[[Node], tuple]:
    """Return what reads arguments from what a node saved, those that it has."""
    return lambda node: tuple(getattr(node, name) for name in names if hasattr(node, name))


FORMULAS: dict[str, Callable] = {
    "addmm": _addmm,
    "mean_all": _mean_all,
    "mm": _mm,
    "mse_loss": _mse_loss,
    "pow_number": _pow_number,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "convolution": _as_one("convolution_backward", _of("input", "weight")),
    "group_norm": _as_one("native_group_norm_backward", _of("input", "weight")),
    "layer_norm": _as_one("native_layer_norm_backward", _of("input", "weight")),
    "max_pool2d_with_indices": _as_one("max_pool2d_with_indices_backward", _of("input")),
    "native_batch_norm": _as_one("native_batch_norm_backward", _of("input", "weight")),
    "nll_loss": _as_one("nll_loss_backward", _of("input", "target")),
    "scaled_dot_product_attention": _as_one("scaled_dot_product_attention_backward", _of("query", "key", "value")),
}
