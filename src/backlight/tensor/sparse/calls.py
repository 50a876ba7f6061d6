"""What a call with a sparse tensor does: a rule for each function that has a sparse form; all others are refused.

A rule has the name of the function that it stands for, and its parameters. Methods that only look at a tensor's shape,
dtype or place in the graph need none (`UNCHANGED`).
"""

from collections.abc import Callable, Mapping

from backlight.codegen.declaration import Op
from backlight.dispatch.interpreters import UNHANDLED
from backlight.dtypes import OLD
from backlight.errors import GraphError
from backlight.kernels.sparse_array import no_kernel
from backlight.ops.elementwise import activations, comparisons, powers, rounding, transcendental
from backlight.ops.sparse import arithmetic as sparse_arithmetic
from backlight.ops.sparse import coo
from backlight.ops.special import special_functions
from backlight.tensor.methods.sparse import SparseMethods
from backlight.tensor.sparse import arithmetic as sums
from backlight.tensor.sparse import conversions, shapes, writes

# Functions of each element that leave 0 at 0: they act on the values of the coalesced tensor.
ELEMENTWISE = {
    name: getattr(module, name)
    for module, names in (
        (activations, "relu"),
        (rounding, "abs sgn sign floor ceil trunc round frac nan_to_num"),
        (transcendental, "asin asinh atan atanh sin sinh tan tanh expm1 log1p deg2rad rad2deg"),
        (special_functions, "erf erfinv"),
        (powers, "sqrt square"),
        (comparisons, "isnan isinf isposinf isneginf signbit"),
    )
    for name in names.split()
}
# Names of functions that have the rule of another
_ALIASES = """
add: __add__ __radd__; add_: __iadd__; sub: __sub__ subtract; sub_: __isub__ subtract_; neg: __neg__ negative
mul: __mul__ __rmul__ multiply; mul_: __imul__ multiply_; div: __truediv__ true_divide divide
div_: __itruediv__ divide_ true_divide_; floor_divide: __floordiv__; pow: __pow__; abs: __abs__ absolute
matmul: __matmul__ matrix_product mm mv; transpose: swapaxes swapdims; t: reversed_dims matrix_transpose
t: hermitian_transpose; get_item: __getitem__; set_item: __setitem__; trunc: fix; cat: concat concatenate
type: as_type; zero_: zero_into
copy_: copy_into; asin: arcsin; asinh: arcsinh; atan: arctan; atanh: arctanh; alias: positive conj resolve_conj real
fill_: fill_into; reciprocal: _reciprocal_times; pow.Scalar: rpow; reshape: flatten view_as reshape_as
"""
ALIASES = {
    other: name.strip()
    for name, others in (line.split(":") for line in _ALIASES.replace("\n", ";").split(";") if ":" in line)
    for other in others.split()
}
REFUSALS = {
    "reshape": "reshape is not implemented for sparse tensors; make it dense by .to_dense() first",
    "expand": "expand is unsupported for Sparse tensors; make it dense by .to_dense() first",
}
# Functions that do with a sparse tensor what they do with any, or go on to functions that have a rule
_UNCHANGED = """
requires_grad requires_grad_ is_leaf grad_fn output_nr grad retains_grad retain_grad register_hook is_inference
register_post_accumulate_grad_hook backward _base _version dtype device shape size dim ndimension numel nelement
ndim nbytes itemsize element_size is_floating_point is_complex is_signed is_conj is_neg get_device __len__
__format__ cpu cuda is_pinned is_distributed is_same_size as_subclass is_meta to_device detach_ cast save to type_as
is_tensor typename reversed_dims matrix_transpose hstack vstack row_stack pin_memory spmm
"""
UNCHANGED = frozenset([*_UNCHANGED.split(), *(kind.old_name.lower() for kind in OLD)])
SPARSE_OPS = frozenset([coo.__name__, sparse_arithmetic.__name__])


def sparse_call(op: Op | None, function: Callable, args: tuple, kwargs: dict):
    """Return what the rule for a function with a sparse tensor among its arguments returns; UNHANDLED: it goes on."""
    if op is None and not _is_of_tensors(function):
        return UNHANDLED
    name = function.__name__ if op is None else op.name
    name = ALIASES.get(name, name)
    if name in RULES:
        return RULES[name](*args, **kwargs)
    if name in ELEMENTWISE:
        return sums.elementwise(ELEMENTWISE[name], *args, **kwargs)
    if op is not None and op.forward.__module__ in SPARSE_OPS:
        return UNHANDLED
    if op is None and name in UNCHANGED:
        return UNHANDLED
    if name in REFUSALS:
        raise GraphError(REFUSALS[name])
    raise no_kernel(name)


def _is_of_tensors(function: Callable) -> bool:
    """Tell whether a function is a method or a function of tensors, which may read the memory of its arguments."""
    where, name = function.__module__, function.__qualname__
    if function.__name__ in vars(SparseMethods):
        return False
    return "Methods." in name or where == "backlight" or where.startswith(("backlight.ops.", "backlight.tensor."))


RULES: Mapping[str, Callable] = {
    "__repr__": conversions.representation,
    "data": conversions.data_of,
    "type": conversions.type_of,
    "numpy": conversions.numpy_of,
    "to_discrete": conversions.to_copy,
    "set_item": conversions.set_item,
    "__reduce_ex__": conversions.reduce_ex,
    "__deepcopy__": conversions.deepcopied,
    "empty_like": conversions.zeros_like,
    "any": sums.any_of,
    **dict.fromkeys(("item", "__float__", "__int__"), conversions.only_value),
    **dict.fromkeys(("__bool__", "is_nonzero"), conversions.truth),
    **dict.fromkeys(("tolist", "data_ptr"), conversions.without_pointer),
    **dict.fromkeys(("storage", "untyped_storage", "is_shared", "share_memory_", "set_"), conversions.without_memory),
    **dict.fromkeys(("__iter__", "unbind"), shapes.unbind),
    **{
        name: getattr(module, name)
        for module, names in (
            (conversions, "detach alias clone contiguous to_copy is_contiguous zeros_like"),
            (sums, "add sub rsub neg mul div floor_divide pow matmul linear addmm sum norm"),
            (shapes, "transpose t permute unsqueeze cat stack select index_select get_item"),
            (writes, "add_ sub_ mul_ div_ neg_ zero_ copy_"),
        )
        for name in names.split()
    },
}
