"""Batching rules of ops with a `dim` argument: reductions, scans, sorting, softmax, splitting. It is shifted by one."""

from collections.abc import Sequence

from backlight.ops.dims import normalise_dim, normalise_dims
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.loop_fallback import loop_over_batch, loop_over_op
from backlight.transforms.vmap.op_call import BatchedCall, rule_for
from backlight.transforms.vmap.rules.elementwise import elementwise

DIM_OPTIONS = ("dim", "dims", "dimension", "dim0", "dim1", "dim2")


def shift_dims(dims: int | Sequence[int], ndim: int):
    """Shift dims of a tensor of `ndim` dims, an int or several, past the batch dim in front."""
    if isinstance(dims, (tuple, list)):
        return tuple([dim + 1 for dim in normalise_dims(dims, ndim)])
    return normalise_dim(dims, ndim) + 1


def shifted_dims(call: BatchedCall, ndim: int) -> dict:
    """Return the options of a call that name dims, shifted."""
    names = [param.name for param in call.op.params if param.name in DIM_OPTIONS]
    return {name: shift_dims(call[name], ndim) for name in names if call[name] is not None}


def with_dims(call: BatchedCall, **changed):
    """Run a call with the batch in front of every tensor, which needs one dim at least; remove dims added for that."""
    tensors = [param.name for param in call.op.arrays if call[param.name] is not None]
    ranks = {call[name]._data.ndim for name in tensors}
    ndim = max(ranks)
    if ndim and 0 in ranks:  # a 0-d tensor with a 1-d one, as gather accepts
        return loop_over_batch(call.level, call.function, call.args, call.kwargs)
    given = {name: call.front(call[name]) for name in tensors}
    if ndim:
        return call.run(**given, **shifted_dims(call, ndim), **changed)
    given = {name: value.unsqueeze(1) for name, value in given.items()}
    dims = {name: 1 for name in DIM_OPTIONS if name in call.given}
    return call.wrapped(_without(call.run_below(**given, **dims, **changed)))


def _without(result: Tensor | tuple):
    """Remove the dim of size 1 that was added."""
    if isinstance(result, tuple):
        parts = [_without(one) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result.squeeze(1) if result._data.ndim == 2 else result


@rule_for(
    """
    _log_softmax_backward_data _safe_softmax _softmax_backward_data argsort cummax cummaxmin_backward cummin cumprod
    cumsum flip gather glu kthvalue linear_recurrence log_softmax logcumsumexp max_dim median_dim min_dim mode
    nanmedian_dim reverse_cumsum scatter_add scatter_number scatter_tensor shift softmax sort scatter_reduce tie_weights
    topk
    """
)
def with_dim(call: BatchedCall):
    """Shift the dims; all tensors of the op are of one rank."""
    return with_dims(call)


@rule_for("gathered_as")
def gathered_as(call: BatchedCall):
    """The same, for an op with an argument for the shape of its result."""
    return with_dims(call, shape=(call.size, *call["shape"]) if len(call["shape"]) else (call.size, 1))


@rule_for("linalg_cross")
def linalg_cross(call: BatchedCall):
    """Align the batches at the same number of dims, and shift the dim."""
    dims = max(call["input"]._data.ndim, call["other"]._data.ndim)
    given = {name: call.front_padded(call[name], dims) for name in ("input", "other")}
    return call.run(**given, dim=shift_dims(call["dim"], dims))


# --- reductions ------------------------------------------------------------------------------------------------------

_ALL = (
    "all",
    "any",
    "amax",
    "amin",
    "count_nonzero",
    "linalg_vector_norm",
    "logsumexp",
    "mean",
    "nansum",
    "std",
    "sum",
)


@rule_for(*_ALL, "std_mean", "var", "var_mean")
def reduction(call: BatchedCall):
    """Reduce over the shifted dims: over all but the batch where none, or an empty tuple, is named."""
    ndim, dim = call["input"]._data.ndim, call["dim"]
    if not ndim:
        return with_dims(call)
    every = dim is None or (isinstance(dim, (tuple, list)) and not dim)
    return call.run(dim=tuple(range(1, ndim + 1)) if every else shift_dims(dim, ndim))


@rule_for("aminmax", "argmax", "argmin", "prod")
def reduction_of_one_dim(call: BatchedCall):
    """Reduce over one shifted dim; where none is named, over all elements, flattened."""
    input, dim = call["input"], call["dim"]
    ndim = input._data.ndim
    if dim is not None or not ndim:
        return with_dims(call)
    result = call.run_below(input=input.physical.reshape((call.size, -1)), dim=1, keepdim=False)
    if call["keepdim"]:
        kept = (call.size, *(1,) * ndim)
        result = type(result)(*[one.view(kept) for one in result]) if isinstance(result, tuple) else result.view(kept)
    return call.wrapped(result)


def _over_everything(name: str, method: str):
    @rule_for(name)
    def over_everything(call: BatchedCall):
        """Reduce over all dims but the batch."""
        physical = call["input"].physical
        if physical._data.ndim == 1:
            physical = physical.unsqueeze(1)
        reduce = getattr(physical, method)
        return call.wrapped(reduce(tuple(range(1, physical._data.ndim))))

    return over_everything


for _name, _method in (("sum_all", "sum"), ("mean_all", "mean"), ("max_all", "amax"), ("min_all", "amin")):
    _over_everything(_name, _method)


@rule_for("prod_all")
def prod_all(call: BatchedCall):
    """Multiply all elements, flattened."""
    return call.wrapped(call["input"].physical.reshape((call.size, -1)).prod(1))


@rule_for("value_selecting_reduction_backward")
def value_selecting_reduction_backward(call: BatchedCall):
    """Shift the dim, and put the batch in front of the size."""
    size, ndim = tuple(call["size"]), len(call["size"])
    if not ndim:
        return call.wrapped(call.front(call["grad_output"]))
    given = {name: call.front(call[name]) for name in ("grad_output", "indices")}
    return call.run(**given, size=(call.size, *size), dim=shift_dims(call["dim"], ndim))


@rule_for("spread")
def spread(call: BatchedCall):
    """Repeat over the shifted dims."""
    size, dims = tuple(call["size"]), call["dims"]
    moved = tuple(range(1, len(size) + 1)) if dims is None else shift_dims(tuple(dims), len(size))
    if not size:
        return call.wrapped(call["input"].physical)
    return call.run(size=(call.size, *size), dims=moved)


@rule_for("prelu")
def prelu(call: BatchedCall):
    """Select elementwise, with the weight in the dim of the channels."""
    with call.inside():
        input, weight = call["input"], call["weight"]
        if weight._data.ndim and input._data.ndim > 1:
            weight = weight.reshape((-1, *(1,) * (input._data.ndim - 2)))
        elif not input._data.ndim:
            weight = weight.reshape(())
        return input.where(input > 0, input * weight)


@rule_for("dist")
def dist(call: BatchedCall):
    """Take the norm of the difference."""
    with call.inside():
        return (call["input"] - call["other"]).norm(call["p"])


@rule_for("isin")
def isin(call: BatchedCall):
    """Look the elements up in the same set; sets that differ are looped over."""
    return loop_over_op(call) if call.is_batched(call["test_elements"]) else elementwise(call)
