"""`functionalize`, which PyTorch needs for its compiler, and helpers: `debug_unwrap`, batch norm replacement.

Transforms here handle in-place writes, and there is no compiler that needs a program without them: the function runs
unchanged. The contract of `functionalize` holds: the same values and the same writes to arguments.
"""

from collections.abc import Callable

from backlight.engine.tensor_state import TensorState, below_batches
from backlight.errors import ArgumentError, GraphError
from backlight.func.reverse import wraps_function
from backlight.nn.modules.channel_norms import BatchNorm
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

REMOVABLE = ("mutations", "mutations_and_views")


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return a function with the same results and the same writes to its arguments as `func`.

    In PyTorch it runs without in-place ops, for the compiler; here it makes no difference.

    Args:
        remove: "mutations", or "mutations_and_views".

    Raises:
        RuntimeError: `remove` is something else.
    """
    if remove not in REMOVABLE:
        raise GraphError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced"
            " with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be"
            " replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @wraps_function(func)
    def functional(*args, **kwargs):
        return func(*args, **kwargs)

    return functional


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the physical tensor of a batched tensor, with the batch first; for debugging.

    Args:
        recurse: unwrap all open vmaps, not only the innermost.
    """
    if not isinstance(tensor, TensorState):
        raise ArgumentError(
            "is_functorch_wrapped_tensor(): incompatible function arguments. The following argument types are "
            f"supported:\n    a tensor; got {type(tensor).__name__}"
        )
    if recurse:
        return below_batches(tensor)
    return tensor._data.physical if getattr(tensor._data, "of_a_batch", False) else tensor


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove the running statistics of all batch norms of a module, itself included; return the module.

    Training updates them in place, which vmap refuses.
    """
    for module in root.modules():
        if isinstance(module, BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
