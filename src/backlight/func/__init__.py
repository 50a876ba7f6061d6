"""Functions of functions: gradients, Jacobians, batches. PyTorch's `torch.func`."""

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.func.forward import jvp, linearize
from backlight.func.functionalizing import debug_unwrap, functionalize, replace_all_batch_norm_modules_
from backlight.func.jacobians import hessian, jacfwd, jacrev
from backlight.func.rearranging import rearrange
from backlight.func.reverse import grad, grad_and_value, value_and_grad, vjp
from backlight.func.stateless import functional_call, stack_module_state
from backlight.transforms.vmap.api import vmap

__all__ = _public_functions(globals())

globals().update(_with_checks(globals(), __all__, __name__))
