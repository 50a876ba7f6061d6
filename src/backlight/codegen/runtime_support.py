"""The slow paths of generated ops: foreign operands, mixed dtypes, broadcast gradients, errors."""

import numbers
import warnings

import numpy as np

from backlight.codegen.complex_refusals import refusal
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.torch_dispatch import torch_dispatch
from backlight.dtypes import from_numpy_dtype, get_default_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.node import Output, freed, modified, name_of_tensor, output_name
from backlight.engine.storage import new_storage
from backlight.engine.tensor_state import TensorState, wrap
from backlight.engine.views import unrecorded_view
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.kernels.elementwise.binary import summed
from backlight.kernels.elementwise.complex_parts import real_parts
from backlight.kernels.half_precision import is_half, widened
from backlight.kernels.memory_order import converted
from backlight.kernels.state_blocks import silent_floats
from backlight.ops.type_promotion import BOOL, as_float, check_scalar, common_dtype, is_float
from backlight.sizes import as_storage_error

ndarray = np.ndarray


class _NotSaved:
    """Placeholder for an input that no wanted gradient needs."""

    _data = _storage = _edge = _tangents = None


NOT_SAVED = _NotSaved()


def is_number(value) -> bool:
    """Tell whether a value is a Python or NumPy number."""
    return isinstance(value, (int, float, complex, np.generic, numbers.Number)) and not isinstance(value, TensorState)


def is_operand(value) -> bool:
    """Tell whether a Python operator takes a value with a tensor: a tensor or a number; NumPy handles its arrays."""
    return isinstance(value, TensorState) or is_number(value)


# PyTorch's functions that take two numbers, too
OF_NUMBERS = frozenset({"add", "sub", "mul", "true_divide", "floor_divide"})


def coerce(op, variant, values):
    """Return tensors for the operands of an op: Python numbers become 0-d tensors of the dtype they will have.

    Returns NotImplemented for an operator with a foreign operand.

    Raises:
        TypeError: an operand is neither a tensor nor, where the op takes them, a number.
    """
    tensors = [value for value in values if isinstance(value, TensorState)]
    if variant == "operator" and not isinstance(values[0], TensorState):
        raise _no_tensors_method(op, values[0])
    if not tensors and variant != "operator" and op.name in OF_NUMBERS and all(map(is_number, values)):
        return [wrap(np.asarray(value, common_dtype([], [value]))[()]) for value in values]
    made = list(values)
    for place, value in enumerate(values):
        if isinstance(value, TensorState):
            continue
        if op.promote and tensors and is_number(value):
            if isinstance(value, bool) and op.dtype_error is not None:
                _check_bool(op, tensors)
            made[place] = _scalar_tensor(value, tensors, op.promote == "float")
        elif variant == "operator" and op.rules and isinstance(value, ndarray):
            return NotImplemented  # NumPy's reflected operator calls __array_ufunc__, which gets the dtype right
        elif op.promote and tensors and isinstance(value, ndarray):
            made[place] = wrap(value)
        elif variant == "operator":
            return NotImplemented
        else:
            raise wrong_argument(op, place, value)
    return made


def _no_tensors_method(op, value: object) -> ArgumentError:
    """Return the error for `Tensor.__radd__(2, x)`: Python calls a tensor's operators on tensors."""
    return ArgumentError(
        f"descriptor '__r{op.name.removeprefix('bitwise_')}__' for 'torch._C.TensorBase' objects doesn't apply to a "
        f"'{type(value).__name__}' object; write the operator itself, or give the tensor first"
    )


def _check_bool(op, tensors) -> None:
    """Raise PyTorch's error if an op does not take True or False with tensors."""
    problem = op.dtype_error(*[tensor._data.dtype for tensor in tensors], BOOL)
    if problem is not None:
        raise ShapeError(problem) if isinstance(problem, str) else problem


def _scalar_tensor(value, tensors, floating: bool = False):
    """Return a number as a 0-d tensor of the dtype that it has as an operand with these tensors."""
    first = tensors[0]._data
    if len(tensors) == 1 and first.dtype.kind == "f" and not isinstance(value, (np.generic, complex)):
        kind = first.dtype
    else:
        value = value.item() if isinstance(value, np.generic) else value
        kind = common_dtype([tensor._data for tensor in tensors], [value])
        kind = as_float(kind) if floating else kind
    return wrap(_number(value, kind) if first.__class__ is ndarray else _number(value, kind)[()])


def number_operand(tensor, value):
    """Return a Python number as a 0-d tensor, as the other operand of a tensor (see NOTE [0-d data])."""
    data = getattr(tensor, "_data", None)
    if data is None:
        return value
    kind = data.dtype
    if kind.kind != "f" and (value.__class__ is float or kind.kind != "i"):
        return _scalar_tensor(value, [tensor])
    if data.__class__ is not ndarray:
        return wrap(kind.type(value) if value.__class__ is float else _number(value, kind)[()])
    return wrap(_number(value, kind))


def float_operand(tensor, value):
    """The same as `number_operand`, for an op that always computes with floats."""
    data = getattr(tensor, "_data", None)
    kind = None if data is None else data.dtype.kind
    if kind is None or kind == "f":
        return number_operand(tensor, value)
    if kind != "i" or data.__class__ is not ndarray:
        return _scalar_tensor(value, [tensor], True)
    return wrap(_number(value, get_default_dtype().numpy))


def _number(value, kind):
    """Return a number as an array of a dtype; integers too large for it wrap round, as in PyTorch."""
    if value.__class__ is int and not -(2**63) <= value < 2**63:
        check_scalar(value)
        return np.array(float(value) if is_float(kind) else value).astype(kind)
    try:
        return np.array(value, kind)
    except OverflowError:
        return np.array(value).astype(kind)


def number_given(op, name: str, value):
    """Return the number that a tensor without dims and history holds, for an option that is one; or raise TypeError."""
    if value._data.ndim or value._edge is not None:
        raise ArgumentError(f"{op.name}(): argument '{name}' must be Number, not Tensor; pass .item() of it")
    return value._data.item()


def wrong_argument(op, place: int, value) -> ArgumentError:
    """Return PyTorch's error for an argument that should have been a tensor."""
    name = op.arrays[place].name if place < len(op.arrays) else op.arrays[-1].name
    position = [param.name for param in op.params].index(name) + 1
    return ArgumentError(
        f"{op.name}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}; "
        "wrap it with torch.tensor(…)"
    )


def refused(op, problem: Exception | None, arrays) -> Exception | None:
    """Return PyTorch's error for dtypes that an op does not take, or NumPy's if PyTorch has none."""
    if op.complex is None and any(array.dtype.kind in "cW" for array in arrays):
        return refusal(op.name, arrays)
    found = op.dtype_error(*[array.dtype for array in arrays])
    return problem if found is None else ShapeError(found) if isinstance(found, str) else found


def check_dtypes(op, arrays) -> None:
    """Raise PyTorch's error for dtypes that an op does not take; accepted dtypes are remembered."""
    problem = refused(op, None, arrays)
    if problem is not None:
        raise problem
    if len({array.dtype for array in arrays}) == 1:
        op.accepted_dtypes.append(arrays[0].dtype)


def unify(op, arrays):
    """Return the arrays in their common dtype (a float one if the op requires it), None for missing ones."""
    present = [array for array in arrays if array is not None]
    if op.dtype_error is not None and (problem := refused(op, None, present)) is not None:
        raise problem
    kind = common_dtype(present)
    if kind.kind in "cW" and op.complex is None:
        raise refusal(op.name, present)
    if op.promote == "float":
        kind = as_float(kind)
    try:
        return [array if array is None or array.dtype == kind else converted(array, kind) for array in arrays]
    except (MemoryError, ValueError) as problem:
        raise as_storage_error(problem) from None


def restoration(data, tensors):
    """Return, for each input, the (shape, dtype) to restore its gradient to, or None if no gradient needs it.

    Where one input differs from the result, the gradients of the others may come out in another dtype as well; and a
    bfloat16 gradient may always, since NumPy widens it wherever a rule multiplies by a Python number.
    """
    shape, kind = data.shape, data.dtype
    present = [tensor for tensor in tensors if tensor is not None]
    if kind.kind in "fc" and all(
        [t._data.dtype == kind and (t._data.shape == shape or t._edge is None) for t in present]  # noqa: C419 - a list is faster here
    ):
        return None
    return tuple([None if tensor is None else (tensor._data.shape, tensor._data.dtype) for tensor in tensors])


def restore(grad, target):
    """Sum a gradient, an array, over the dims that broadcasting added or stretched, and cast it back."""
    if target is None or grad is None:
        return grad
    shape, kind = target
    if grad.dtype.kind in "cW" and kind.kind not in "cW":  # of a real input of a complex result
        grad = real_parts(grad)
    if grad.shape != shape:
        grad = sum_to_shape(grad, shape)
    return grad if grad.dtype == kind else grad.astype(kind)


def sum_to_shape(grad, shape):
    """Sum an array down to a shape that broadcasts to the array's; bools and integers become int64."""
    if is_half(grad) and grad.shape != tuple(shape):
        return sum_to_shape(widened(grad), shape).astype(grad.dtype)
    if grad.dtype.kind == "u":
        grad = grad.astype(np.int64)
    added = grad.ndim - len(shape)
    if added > 0:
        grad = summed(grad, tuple(range(added)), False)
    stretched = tuple(i for i, size in enumerate(shape) if size == 1 and grad.shape[i] != 1)
    if stretched:
        grad = summed(grad, stretched, True)
    return grad


def restore_tensor(grad, target):
    """The same as `restore`, on a tensor under create_graph."""
    if target is None or grad is None:
        return grad
    shape, kind = target
    grad = TENSOR_OPS.real(grad) if grad._data.dtype.kind in "cW" and kind.kind not in "cW" else grad
    grad = _summed_tensor(grad, tuple(shape)) if tuple(grad.shape) != tuple(shape) else grad
    return grad if grad._data.dtype == kind else grad.to(from_numpy_dtype(np.dtype(kind)))


def _summed_tensor(grad, shape: tuple):
    """Return `sum_to_shape` of a tensor by the ops that PyTorch records for it."""
    if not shape:
        return grad.sum()
    added = grad.ndim - len(shape)
    stretched = (added + i for i, size in enumerate(shape) if size == 1 and grad.shape[added + i] != 1)
    total = grad.sum((*range(added), *stretched), keepdim=True)
    return total.view(shape) if added else total


def quietly(forward, *args, **kwargs):
    """Run a forward again without warnings, for a caller who turned NumPy's floating point warnings into errors."""
    with silent_floats(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return forward(np, *args, **kwargs)


def explained(explain, arrays, problem: Exception) -> Exception:
    """Return the error that `explain` raises for these arrays, or the problem itself if it finds nothing."""
    try:
        explain(*arrays)
    except Exception as better:
        return better.with_traceback(None)
    return as_storage_error(problem)


def broadcast_problem(problem: Exception, arrays) -> Exception:
    """Return PyTorch's error for shapes that do not broadcast, or the problem itself if they do."""
    common, *others = [array.shape for array in arrays if array is not None]
    for shape in others:
        dims = max(len(common), len(shape))
        left, right = [(1,) * (dims - len(one)) + one for one in (common, shape)]
        for dim in reversed(range(dims)):
            if left[dim] != right[dim] and 1 not in (left[dim], right[dim]):
                return ShapeError(
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) at "
                    f"non-singleton dimension {dim}; the shapes are {list(common)} and {list(shape)}: "
                    "make the sizes equal or one of them 1 (see unsqueeze and expand)"
                )
        common = tuple(b if a == 1 else a for a, b in zip(left, right))
    return as_storage_error(problem, common)


def check_saved(node, slot: str):
    """Return what a node saved under `slot`, or raise if it was freed or written to since.

    Raises:
        RuntimeError: the graph was freed, or the tensor modified in place.
    """
    value = getattr(node, slot)
    if value is None:
        places = node.users.get(slot)
        if places is None or any(node.edges[place] is not None for place in places):
            raise freed(node)
        return NOT_SAVED
    storage = node.out_storage if slot == "out" else value._storage
    version = getattr(node, slot + "_version")
    if storage is None or storage.version == version:
        return value
    if storage.written_since(version):
        data, name = (value, output_name(node)) if slot == "out" else (value._data, name_of_tensor(value))
        raise modified(node, data, storage, version, name)
    return value if slot == "out" else _kept_its_history(value)


def _kept_its_history(tensor):
    """Return a saved tensor, unless it is the one that `detach_()` took out of the graph."""
    if tensor._was_detached:
        raise GraphError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )
    return tensor


def version_of(tensor) -> int:
    """Return how often a tensor's memory was written to."""
    return 0 if tensor._storage is None else tensor._storage.version


def own_edge(node, number: int = 0):
    """Return the edge to one of a node's outputs."""
    if node.extra is not None and node.extra.output_edge is not None:
        return node.extra.output_edge()
    return node.itself if node.outputs == 1 else Output(node.itself, number)


def output_tensor(node, number: int = 0, data=None):
    """Return a node's saved output as a tensor that is part of the graph."""
    if node.extra is not None and node.extra.outputs:
        return torch_dispatch.saved(node.extra.outputs[number], own_edge(node, number))
    out = wrap(node.out if data is None else data, own_edge(node, number), node.out_storage)
    return out if node.extra is None else with_tangents(out, node, number)


def with_tangents(out, node, number: int = 0):
    """Return a node's saved output with the tangents that it has inside a level of forward mode."""
    if node.extra is not None:
        out._tangents = node.extra.tangents.get(number)
    return out


def constant(value):
    """Return a kept value for use in a rule under create_graph: arrays as tensors, the rest as it is."""
    return wrap(value) if isinstance(value, (ndarray, np.generic)) else value


def still_attached(tensor, edge):
    """Return a saved input attached to the graph as it was: it may have been detached in place since."""
    if tensor._edge is not None or edge is None or edge.is_leaf_edge:
        return tensor
    alias = wrap(tensor._data, edge, tensor._storage)
    alias._tangents = tensor._tangents
    return alias


def check_saved_list(node, slot: str):
    """The same as `check_saved`, for a list of inputs."""
    tensors = getattr(node, slot)
    if tensors is None:
        raise freed(node)
    for tensor, version in zip(tensors, getattr(node, slot + "_version")):
        if version_of(tensor) == version:
            continue
        if tensor._storage.written_since(version):
            raise modified(node, tensor._data, tensor._storage, version, name_of_tensor(tensor))
        _kept_its_history(tensor)
    return tensors


def check_saved_outputs(node, graph: bool):
    """The same as `check_saved`, for all outputs of a node that has several."""
    if node.out is None:
        raise freed(node)
    for number, (data, storage, version) in enumerate(zip(node.out, node.out_storage, node.out_version)):
        if storage.written_since(version):
            raise modified(node, data, storage, version, output_name(node, number))
    if not graph:
        return node.out
    numbers = node.op.differentiable or range(len(node.out))
    place = {number: i for i, number in enumerate(numbers)}
    outs = [
        wrap(data, own_edge(node, place[i]) if i in place else None, storage)
        for i, (data, storage) in enumerate(zip(node.out, node.out_storage))
    ]
    return [with_tangents(one, node, place[i]) if i in place else one for i, one in enumerate(outs)]


def optional_data(op, name: str, value):
    """Return the data of an argument that may be None."""
    if isinstance(value, TensorState):
        return value._data
    place = [param.name for param in op.arrays].index(name)
    raise wrong_argument(op, place, value)


def tensor_list(op, values) -> tuple:
    """Return a sequence of tensors as a tuple, or raise PyTorch's error."""
    name = op.arrays[0].name
    if isinstance(values, TensorState) or not isinstance(values, (tuple, list)):
        raise ArgumentError(
            f"{op.name}(): argument '{name}' (position 1) must be tuple of Tensors, not {type(values).__name__}"
        )
    for place, value in enumerate(values):
        if not isinstance(value, TensorState):
            raise ArgumentError(f"expected Tensor as element {place} in argument 0, but got {type(value).__name__}")
    return tuple(values)


def any_edge(tensors) -> bool:
    """Tell whether one of the tensors requires grad."""
    return any(tensor._edge is not None for tensor in tensors)


def link_outputs(node, outs, numbers=None) -> None:
    """Make tensors the outputs of a node that has several; those not in `numbers` get no gradient."""
    for out in outs:
        out._edge = None
    for place, number in enumerate(range(len(outs)) if numbers is None else numbers):
        outs[number]._edge = node if node.outputs == 1 else Output(node, place)


def unrecorded_outputs(outs) -> None:
    """Finish several outputs that no node was made for."""
    for out in outs:
        out._edge = None
        if out._view is not None:
            unrecorded_view(out)
        elif modes.marks:
            out._storage = new_storage()


def free_saved(node) -> None:
    """Drop what a node saved for backward."""
    for slot in node.freed_slots:
        setattr(node, slot, None)
