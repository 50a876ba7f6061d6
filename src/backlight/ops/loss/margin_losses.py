"""Losses that require a margin between scores: ranking, hinge, triplet."""

from backlight.dispatch.dispatcher import composite_function, public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, ValueProblem
from backlight.ops.elementwise.activations import logsigmoid, relu
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.loss.distances import pairwise_distance
from backlight.ops.loss.regression_losses import reduced, reduction_of
from backlight.ops.number_operands import require_floats
from backlight.ops.type_promotion import INT64


@public_function
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Return the input where the target is 1, and max(0, margin − input) where it is −1."""
    reduction = reduction_of(reduction, size_average, reduce)
    far = where(target != 1, (margin - input).clamp_min(0), 0.0)
    near = where(target != -1, input, 0.0)
    losses = far + near
    return reduced(losses if input.is_floating_point() else losses.to(input.dtype), reduction)


@public_function
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """Return max(0, margin − target · (input1 − input2)): a target of 1 wants input1 to be larger, −1 input2.

    Raises:
        RuntimeError: the three have not the same number of dims.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1._data.ndim == input2._data.ndim == target._data.ndim:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public_function
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """Return 1 − cos(input1, input2) where the target is 1, and max(0, cos − margin) where it is −1.

    Shapes: inputs (n, dim) and target (n,), or inputs (dim,) and target ()
    """
    reduction = reduction_of(reduction, size_average, reduce)
    dims, sizes = target._data.ndim, (list(input1._data.shape), list(input2._data.shape))
    if dims > 1:
        raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
    if input1._data.ndim != dims + 1 or input2._data.ndim != dims + 1:
        raise ShapeError(
            f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with sizes {sizes[0]} and "
            f"{sizes[1]}."
        )
    tiny = 1e-12
    products = (input1 * input2).sum(dims)
    lengths = ((input1 * input1).sum(dims) + tiny) * ((input2 * input2).sum(dims) + tiny)
    cosine = products / lengths.sqrt()
    near = where(target == 1, 1 - cosine, 0.0)
    far = where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return reduced(near + far, reduction)


@public_function
def triplet_margin_loss(
    anchor: TensorState,
    positive: TensorState,
    negative: TensorState,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
    """Return max(0, margin + |anchor − positive| − |anchor − negative|) in the p-norm.

    Args:
        swap: measure the negative from the positive if it is nearer to that.
    """

    def distance(a: TensorState, b: TensorState):
        return pairwise_distance(a, b, p, eps)

    reduction = reduction_of(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """Return max(0, margin + d(anchor, positive) − d(anchor, negative)) with a distance of the caller's.

    Raises:
        ValueError: the margin is not above 0.
        RuntimeError: the three have not the same number of dims.
    """
    reduction = reduction_of(reduction)
    if margin <= 0:
        raise ValueProblem(f"margin must be greater than 0, got {margin}")
    dims = [tensor._data.ndim for tensor in (anchor, positive, negative)]
    if len(set(dims)) != 1:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def multilabel_soft_margin_loss(
    input: TensorState, target: TensorState, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """Return the binary cross-entropy of sigmoid(input) for targets of 0 and 1, averaged over the last dim."""
    reduction = reduction_of(reduction, size_average, reduce)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / input._data.shape[-1], reduction)


@composite_function
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Return Σ max(0, margin − input[target] + input[other])^p over the other classes, divided by their number.

    Shapes: input (classes,) or (n, classes), target () or (n,)

    Raises:
        ValueError: p is neither 1 nor 2.
        RuntimeError: a target is no class, or the sizes do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueProblem(f"only p == 1 and p == 2 supported, got {p}")
    require_floats("multi_margin_loss_cpu_kernel", input, halves=False)
    if weight is not None and weight._data.ndim != 1:
        raise ValueProblem("weight must be one-dimensional")
    rows = _rows(input)
    count, classes = rows._data.shape
    if target._data.size != count or target._data.ndim > 1:
        raise ShapeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target._data.shape)}. Input has shape "
            f"{list(input._data.shape)}."
        )
    if weight is not None and weight._data.size != classes:
        raise ShapeError(f"inconsistent weight size, expected {classes} but got {list(weight._data.shape)}")
    if weight is not None and weight.dtype != input.dtype:
        names = [from_numpy_dtype(one._data.dtype).old_name for one in (input, weight)]
        raise ShapeError(f"expected scalar type {names[0]} but found {names[1]}; convert the weight")
    _require_long(target)
    _check_targets(target, classes)
    index = target.reshape((-1, 1))
    gaps = relu(margin - rows.gather(1, index) + rows)
    losses = gaps if p == 1 else gaps * gaps
    if weight is not None:
        losses = losses * weight.gather(0, target.reshape((-1,))).reshape((-1, 1))
    losses = losses.scatter(1, index, 0.0).sum(1) / classes
    return reduced(losses.reshape(target._data.shape) if reduction == "none" else losses, reduction)


def _rows(input: TensorState) -> TensorState:
    """Return a vector of classes as a matrix of one row, or a matrix as it is.

    Raises:
        RuntimeError: there are no classes.
    """
    shape = input._data.shape
    if len(shape) > 2 or (shape and not shape[-1]):
        raise ShapeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    return input if len(shape) == 2 else input.reshape((1, -1))


def _require_long(target: TensorState) -> None:
    kind = target._data.dtype
    if kind != INT64:
        raise ShapeError(f"expected scalar type Long but found {from_numpy_dtype(kind).old_name}; use target.long()")


def _check_targets(target: TensorState, classes: int) -> None:
    found = target._data
    if found.size and not (found.min() >= 0 and found.max() < classes):
        raise ShapeError(
            f"target out of range; there are {classes} classes, and targets go from {found.min()} to {found.max()}"
        )


@composite_function
def multilabel_margin_loss(
    input: TensorState, target: TensorState, size_average=None, reduce=None, reduction: str = "mean"
):
    """Return Σ max(0, 1 − input[target] + input[other]) over targets and other classes, divided by the classes.

    Args:
        target: in each row the numbers of its classes, ended by −1.

    Shapes: input (classes,) or (n, classes), target the same
    """
    reduction = reduction_of(reduction, size_average, reduce)
    require_floats("multilabel_margin_loss_forward_out_frame", input, halves=False)
    rows = _rows(input)
    if target._data.shape != input._data.shape:
        raise ShapeError(
            f"inconsistent target size: {list(target._data.shape)} for input of size: {list(input._data.shape)}"
        )
    _require_long(target)
    classes = rows._data.shape[-1]
    index = target.reshape(rows._data.shape)
    listed = (index == -1).cumsum(1) == 0
    places = index.masked_fill(~listed, 0)
    counted = listed.to(input.dtype)
    is_target = (rows.detach() * 0).scatter_add(1, places, counted).clamp_max(1)
    at_targets = rows.gather(1, places)
    gaps = relu(1 - at_targets.unsqueeze(2) + rows.unsqueeze(1))  # (n, targets, classes)
    losses = (gaps * counted.unsqueeze(2) * (1 - is_target).unsqueeze(1)).sum((1, 2)) / classes
    return reduced(losses if input._data.ndim == 2 else losses.reshape(()), reduction)
