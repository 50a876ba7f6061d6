"""Batching rules of losses: compute each element's loss, then reduce within each element of the batch."""

from math import prod

from backlight.ops.elementwise.copying import cast
from backlight.ops.type_promotion import common_dtype
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.loop_fallback import loop_over_op
from backlight.transforms.vmap.op_call import BatchedCall, rule_for
from backlight.transforms.vmap.rules.shapes import folded


def _reduced(losses: Tensor, reduction: str):
    """Reduce a batched tensor of losses over all its own dims."""
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


@rule_for(
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "mse_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
)
def elementwise_loss(call: BatchedCall):
    """Align the batches of all tensors, weights too, compute unreduced losses, and reduce them afterwards."""
    tensors = call.tensors()
    dims = max(tensor._data.ndim for tensor in tensors)
    given = {param.name: call[param.name] for param in call.op.arrays}
    if call.op.promote:
        kind = common_dtype([tensor._data for tensor in tensors])
        with call.inside():
            given = {name: cast(value, kind) for name, value in given.items()}
    given = {name: call.front_padded(value, dims) for name, value in given.items()}
    losses = call.wrapped(call.run_below(**given, reduction="none"))
    with call.inside():
        return _reduced(losses, call["reduction"])


@rule_for("cross_entropy", "cross_entropy_2d", "nll_loss", "nll_loss2d", "smoothed_cross_entropy")
def loss_of_classes(call: BatchedCall):
    """Merge the batch into the rows, compute each row's loss, and divide by the weights of the rows not ignored."""
    input, target, weight = call["input"], call["target"], call["weight"]
    if call.is_batched(weight):
        return loop_over_op(call)
    if input._data.ndim < 2:
        losses = call.wrapped(
            call.run_below(input=call.front(input), target=call.front(target).reshape(call.size), reduction="none")
        )
    else:
        losses = folded(call, "input", "target", reduction="none")
    with call.inside():
        losses = losses.reshape(target._data.shape)
        if call["reduction"] != "mean":
            return _reduced(losses, call["reduction"])
        counted = target != call["ignore_index"]
        total = counted.to(input.dtype)
        if weight is not None:
            total = total * weight[target.masked_fill(~counted, 0)]
        return losses.sum() / total.sum()


def _rows(call: BatchedCall) -> dict:
    """Return the targets and the factors of all rows of the batch."""
    target = call.front(call["target"])
    shape = target._data.shape
    target = target.reshape((prod(shape[:2]), *shape[2:]))
    factors = call.front(call["factors"]).reshape((call.size, -1)).expand((call.size, prod(shape[1:])))
    return {"target": target, "factors": factors.reshape(-1)}


@rule_for("spread_over_classes")
def spread_over_classes(call: BatchedCall):
    """Merge the batch into the rows; one number for all rows is repeated."""
    size, given = tuple(call["size"]), _rows(call)
    grad = call.front(call["input"])
    ones = (1,) * (call["target"]._data.ndim - call["input"]._data.ndim)
    grad = grad.reshape((*grad._data.shape, *ones)).expand((call.size, *call["target"]._data.shape))
    full = (call.size, *size) if len(size) == 1 else (call.size * size[0], *size[1:])
    out = call.run_below(input=grad.reshape(given["target"]._data.shape), size=full, **given)
    return call.wrapped(out.reshape((call.size, *size)))


@rule_for("take_of_classes")
def take_of_classes(call: BatchedCall):
    """Merge the batch into the rows, and sum the rows of each element afterwards."""
    size, given = tuple(call["size"]), _rows(call)
    grads = call.front(call["input"])
    shape = grads._data.shape
    rows = grads if len(shape) == 2 else grads.reshape((prod(shape[:2]), *shape[2:]))
    out = call.run_below(input=rows, size=tuple(given["target"]._data.shape), **given)
    out = out.reshape((call.size, *call["target"]._data.shape))
    return call.wrapped(out if size else out.reshape((call.size, -1)).sum(1))
