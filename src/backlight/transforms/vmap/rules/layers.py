"""Batching rules of layers: convolution, pooling, padding, normalisation, embedding, attention."""

from collections.abc import Callable
from math import prod

from backlight.ops.elementwise.copying import cast
from backlight.tensor.ranges import arange
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.loop_fallback import loop_over_op
from backlight.transforms.vmap.op_call import BatchedCall, rule_for
from backlight.transforms.vmap.rules.shapes import folded


@rule_for(
    """
    grid_sampler_2d grid_sampler_3d max_unpool2d max_unpool3d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d avg_pool3d
    max_pool2d_with_indices max_pool3d_with_indices circular_pad1d circular_pad2d circular_pad3d reflection_pad1d
    reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d upsample_backward
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    """
)
def of_each_plane(call: BatchedCall):
    """Merge the batch into the examples of all tensors, or into the channels where there are no examples."""
    return folded(call, *[param.name for param in call.op.arrays])


@rule_for("im2col", "col2im", "channel_shuffle")
def of_each_example(call: BatchedCall):
    """Merge the batch into the examples, or use it as the examples."""
    alone = {"im2col": 3, "col2im": 2}.get(call.op.name)
    return call.run() if call["input"]._data.ndim == alone else folded(call, "input")


@rule_for(
    """
    adaptive_avg_pool2d_backward adaptive_avg_pool3d_backward affine_grid_generator affine_grid_generator_backward
    avg_pool2d_backward avg_pool3d_backward repeating_pad_backward
    """
)
def of_a_size(call: BatchedCall):
    """Merge the batch into the examples, whose number in the size grows with it."""
    option = "size" if "size" in call.given else "input_sizes"
    examples, *rest = call[option]
    return folded(call, call.op.arrays[0].name, **{option: (examples * call.size, *rest)})


@rule_for("add_at_places")
def add_at_places(call: BatchedCall):
    """Give each element of the batch its own range of the flat indices."""
    sizes = tuple(call["sizes"])
    return call.run(input=call.front(call["input"]), places=_flat_places(call, prod(sizes)), sizes=(call.size, *sizes))


@rule_for("taken_at_places")
def taken_at_places(call: BatchedCall):
    """Read from each element's own range of the flat indices."""
    return call.run(input=call.front(call["input"]), places=_flat_places(call, prod(call["input"]._data.shape)))


def _flat_places(call: BatchedCall, count: int):
    places = call.front(call["places"])
    return places + _numbers(call, places._data.ndim) * count


def _numbers(call: BatchedCall, ndim: int):
    """Return the numbers of the batch's elements as a tensor whose first of `ndim` dims is the batch."""
    return arange(call.size).reshape((call.size, *(1,) * (ndim - 1)))


# --- convolution -----------------------------------------------------------------------------------------------------


@rule_for("convolution")
def convolution(call: BatchedCall):
    """Merge the batch into the examples; where weights are batched, into the channels, with groups for each element."""
    weight, bias = call["weight"], call["bias"]
    if not call.is_batched(weight) and not call.is_batched(bias):
        return folded(call, "input")
    out = convolved(call, bias=None)
    if bias is None:
        return out
    with call.inside():
        return out + bias.reshape((-1, *(1,) * (out._data.ndim - 2)))


def convolved(call: BatchedCall, **changed):
    """Convolve without a bias."""
    weight = call["weight"]
    if not call.is_batched(weight):
        return folded(call, "input", **changed)
    size, groups = call.size, call["groups"]
    kernel = weight.physical.reshape((-1, *weight._data.shape[1:]))
    if groups == 1 and not call["transposed"] and not call.is_batched(call["input"]):
        out = call.run_below(input=call["input"], weight=kernel, **changed)
    else:
        out = call.run_below(input=_in_channels(call, "input"), weight=kernel, groups=groups * size, **changed)
    return call.wrapped(_out_of_channels(call, out))


def _in_channels(call: BatchedCall, name: str):
    """Return a tensor (batch, examples, channels, …) as (examples, batch · channels, …)."""
    front = call.front(call[name])
    shape = front._data.shape
    return front.transpose(0, 1).reshape((shape[1], shape[0] * shape[2], *shape[3:]))


def _out_of_channels(call: BatchedCall, out: Tensor):
    shape = out._data.shape
    return out.reshape((shape[0], call.size, shape[1] // call.size, *shape[2:])).transpose(0, 1)


@rule_for("convolution_weight")
def convolution_weight(call: BatchedCall):
    """Merge the batch into the channels, with groups for each element."""
    given = {name: _in_channels(call, name) for name in ("grad_output", "input")}
    out = call.run_below(**given, groups=call["groups"] * call.size)
    return call.wrapped(out.reshape((call.size, -1, *out._data.shape[1:])))


# --- normalisation ---------------------------------------------------------------------------------------------------


def _then_scaled(call: BatchedCall, normal: Tensor, shape_of: Callable[[Tensor], Tensor]):
    """Multiply the normalised values by the weight and add the bias, both in the shape that `shape_of` gives."""
    with call.inside():
        weight, bias = (call.given.get(name) for name in ("weight", "bias"))
        if weight is not None:
            normal = normal * cast(shape_of(weight), normal._data.dtype)
        return normal if bias is None else normal + cast(shape_of(bias), normal._data.dtype)


@rule_for("layer_norm", "rms_norm")
def layer_norm(call: BatchedCall):
    """Normalise with the batch in front; apply a batched weight afterwards."""
    if not call["input"]._data.size:
        with call.inside():
            return call.op.decomposed(**call.given)
    if not call.is_batched(call["weight"]) and not call.is_batched(call.given.get("bias")):
        return call.run()
    nothing = {name: None for name in ("weight", "bias") if name in call.given}
    normal = call.run_below(**nothing)
    normal = call.wrapped(normal) if call.is_batched(call["input"]) else normal
    return _then_scaled(call, normal, lambda value: value)


@rule_for("group_norm")
def group_norm(call: BatchedCall):
    """Merge the batch into the examples; scale and shift afterwards."""
    if not call.is_batched(call["weight"]) and not call.is_batched(call["bias"]):
        return folded(call, "input")
    normal = folded(call, "input", weight=None, bias=None)
    ones = (1,) * (call["input"]._data.ndim - 2)
    return _then_scaled(call, normal, lambda value: value.reshape((-1, *ones)))


@rule_for("native_batch_norm")
def batch_norm(call: BatchedCall):
    """Merge the batch into the channels; scale and shift afterwards."""
    ones = (1,) * (call["input"]._data.ndim - 2)
    statistics = [call[name] for name in _RUNNING]
    if not any(call.is_batched(one) for one in (call["input"], *statistics)):
        normal, mean, variance = call.run_below(weight=None, bias=None)
    else:
        running = {name: None if call[name] is None else call.front(call[name]).reshape(-1) for name in _RUNNING}
        out, *moments = call.run_below(input=_in_channels(call, "input"), weight=None, bias=None, **running)
        normal = call.wrapped(_out_of_channels(call, out))
        mean, variance = (call.wrapped(one.reshape((call.size, -1))) for one in moments)
    return _then_scaled(call, normal, lambda value: value.reshape((-1, *ones))), mean, variance


_RUNNING = ("running_mean", "running_var")


# --- embedding, attention --------------------------------------------------------------------------------------------


@rule_for("embedding")
def embedding(call: BatchedCall):
    """Look up rows for the full batch; batched tables are concatenated."""
    weight, indices = call["weight"], call["indices"]
    if not call.is_batched(weight):
        return call.run()
    if call["scale_grad_by_freq"]:
        return loop_over_op(call)
    rows, padding = weight._data.shape[0], call["padding_idx"]
    table = weight.physical.reshape((-1, *weight._data.shape[1:]))
    places = call.front(indices)
    out = call.run_below(weight=table, indices=places + _numbers(call, places._data.ndim) * rows, padding_idx=-1)
    if padding >= 0:  # its gradient stops here, since the op takes only one padding row
        out = out.detach().where((places == padding).unsqueeze(-1), out)
    return call.wrapped(out)


@rule_for("embedding_dense_backward")
def embedding_dense_backward(call: BatchedCall):
    """Add to concatenated tables."""
    if call["scale_grad_by_freq"]:
        return loop_over_op(call)
    rows, padding = call["num_weights"], call["padding_idx"]
    grad, places = call.front(call["grad_output"]), call.front(call["indices"])
    if padding >= 0:
        grad = grad.masked_fill((places == padding).unsqueeze(-1), 0)
    moved = places + _numbers(call, places._data.ndim) * rows
    table = call.run_below(grad_output=grad, indices=moved, num_weights=rows * call.size, padding_idx=-1)
    return call.wrapped(table.reshape((call.size, rows, -1)))


@rule_for("scaled_dot_product_attention")
def attention(call: BatchedCall):
    """Put the batch in front of the heads; a mask and the factors of dropout are aligned with them."""
    dims = max(call[name]._data.ndim for name in ("query", "key", "value"))
    given = {name: call.front_padded(call[name], dims) for name in ("query", "key", "value")}
    for name in ("attn_mask", "factors"):
        given[name] = call.front_padded(call[name], dims)
    return call.run(**given)
