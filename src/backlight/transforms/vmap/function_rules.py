"""Batching rules of functions that are not ops."""

from collections.abc import Callable

from backlight.dispatch.interpreters import UNHANDLED, Interpreter
from backlight.errors import GraphError
from backlight.ops.indexing import embedding_bags, gather_scatter
from backlight.ops.linalg import pseudoinverse
from backlight.ops.loss import ctc, distances, margin_losses
from backlight.ops.nn import channel_norms, native_norms
from backlight.ops.reduction import quantiles, segment_reduce
from backlight.ops.shape import expanding
from backlight.tensor.factories import empty_like, full_like, ones_like, zeros_like
from backlight.tensor.methods.creation import CreationMethods
from backlight.transforms.vmap.batched_tensor import batched
from backlight.transforms.vmap.loop_fallback import loop_over_batch, warn_of_loop

RUNNING_UNBATCHED = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap"
)

_rules: dict = {}


def function_rule(*functions, always: bool = False):
    """Declare the decorated function to be the rule of the named functions, each a `composite_function`.

    Args:
        always: call the rule even if no argument is batched.
    """

    def declare(rule: Callable):
        for function in functions:
            _rules[function] = (rule, always)
        return rule

    return declare


def rule_of_function(function: Callable) -> tuple:
    """Return the rule of a function, and whether it also runs if no argument is batched."""
    found = _rules.get(function)
    if found is not None:
        return found
    if hasattr(function, "batch_rule"):  # it is a function of a layer above
        return function.batch_rule, False
    for kind in IN_PLACE:
        if hasattr(function, kind):
            return _rules[kind], False
    return None, False


IN_PLACE = ("writes", "reshapes")  # attributes of in-place functions that hold the op


def in_place_rule(kind: str):
    """Declare the rule of all in-place forms of ops of a kind."""

    def declare(rule: Callable):
        _rules[kind] = rule
        return rule

    return declare


@function_rule(zeros_like, ones_like, empty_like)
def like(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Allocate for each element of the batch: the result may be written to."""
    return batched(function(args[0].physical, *args[1:], **kwargs), level)


@function_rule(full_like)
def full_like_batch(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """The same, unless the values differ."""
    if level.any_batched(args[1:], kwargs):
        return loop_over_batch(level, function, args, kwargs)
    return like(level, function, args, kwargs)


@function_rule(CreationMethods.new_zeros, CreationMethods.new_ones, CreationMethods.new_empty)
def new_of_sizes(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Put the batch in front of the sizes."""
    tensor, *sizes = args
    kwargs = dict(kwargs)
    size = kwargs.pop("size", None)
    if size is None:
        size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    size = tuple(size)
    return batched(function(tensor.physical, (level.size, *size), **kwargs), level)


@function_rule(CreationMethods.new_full)
def new_full(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Put the batch in front of the sizes, unless the values differ."""
    if level.any_batched(args[1:], kwargs):
        return loop_over_batch(level, function, args, kwargs)
    given = {**dict(zip(("size", "fill_value"), args[1:])), **kwargs}
    given["size"] = (level.size, *given["size"])
    return batched(function(args[0].physical, **given), level)


@function_rule(
    embedding_bags.embedding_bag,
    ctc.ctc_loss,
    margin_losses.multi_margin_loss,
    margin_losses.multilabel_margin_loss,
    segment_reduce.segment_reduce,
)
def one_by_one(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Run on each element of the batch by itself: the function reads values."""
    warn_of_loop(function.__name__)
    return loop_over_batch(level, function, args, kwargs)


@function_rule(
    quantiles.nanquantile,
    quantiles.quantile,
    pseudoinverse.linalg_matrix_rank,
    pseudoinverse.linalg_pinv,
    expanding.repeat_interleave,
)
def one_by_one_if_others_batched(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Run on each element by itself if an argument other than the first is batched: its values are read."""
    if not level.any_batched(args[1:], kwargs):
        return UNHANDLED
    return one_by_one(level, function, args, kwargs)


@function_rule(distances.raised_length)
def raised_length(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Clamp all lengths, without checking whether one is small."""
    x, dim, eps = args
    with level.reenter():
        length = x.norm(2, dim, keepdim=True)
        return length + (length.detach().clamp_min(eps) - length.detach())


@function_rule(gather_scatter.counted_from_start)
def counted_from_start(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
    """Wrap negative indices, without checking whether there is one."""
    indices, size = args
    with level.reenter():
        return indices + size * (indices < 0).to(indices.dtype)


def _moving(function: Callable, training: str, always: bool):
    """Declare a rule for a function that updates running statistics, which must be batched: each element has its own.

    Args:
        training: the name of the argument that says whether they are updated.
        always: run on each element by itself in other cases, too.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @function_rule(function)
    def moving(level: Interpreter, function: Callable, args: tuple, kwargs: dict):
        given = {**dict(zip(names, args)), **kwargs}
        running = [given.get(name) for name in ("running_mean", "running_var")]
        running = [one for one in running if one is not None]
        if not running or not given.get(training, training == "use_input_stats"):
            return one_by_one(level, function, args, kwargs) if always else UNHANDLED
        if not level.any_batched((given["input"], *running), {}):
            return UNHANDLED
        if not all(level.any_batched((one,), {}) for one in running):
            raise GraphError(RUNNING_UNBATCHED)
        return loop_over_batch(level, function, args, kwargs)


_moving(channel_norms.batch_norm_with_statistics, "training", False)
_moving(channel_norms.instance_norm, "use_input_stats", False)
_moving(native_norms.native_batch_norm, "training", True)
function_rule(native_norms.native_group_norm, native_norms.native_layer_norm)(one_by_one)
