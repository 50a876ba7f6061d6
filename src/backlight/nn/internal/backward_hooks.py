"""Full backward hooks, on the gradients of one call of a module; and PyTorch's old ones, `register_backward_hook`.

The old ones are hooks on the node that made a module's result: they get the gradients of that one node only, and
PyTorch warns where these are not the module's. They are here for programs that use them.

NOTE [Two identity nodes]
The inputs pass through one identity node and the outputs through another. Backward runs the outputs' node first, which
stores the gradients of the outputs, and the inputs' node last, after all nodes of the module.
"""

import warnings
from collections.abc import Callable

from backlight.autograd.function import Function
from backlight.engine.grad_mode import is_grad_enabled
from backlight.engine.hook_calls import check_answer
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.system.user_warnings import warn_outside


class BackwardHookFunction(Function):
    """The identity, as a separate node."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class GradientWatch:
    """Runs the backward hooks of one call (see NOTE [Two identity nodes])."""

    def __init__(self, module: object, pre_hooks: list, hooks: list):
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.grad_outputs: tuple | None = None
        self.inputs = self.outputs = 0  # how many there are, tensors or not
        self.input_places: list[int] | None = None  # which of them are tensors; None if none requires grad
        self.output_places: list[int] | None = None

    def hook_inputs(self, args: tuple) -> tuple:
        """Return the arguments with their tensors passed through the first identity node."""
        self.inputs = len(args)
        args, self.input_places = _apply_hook_function(args, self._on_grad_inputs)
        return args

    def hook_outputs(self, result: object):
        """Return the result, a tensor or a (named) tuple, with its tensors passed through the second identity node."""
        if not isinstance(result, (TensorState, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=4,
            )
        several = result if isinstance(result, tuple) else (result,)
        self.outputs = len(several)
        several, self.output_places = _apply_hook_function(several, self._on_grad_outputs)
        return several if isinstance(result, tuple) else several[0]

    def _on_grad_outputs(self, _: tuple, grads: tuple):
        """Store the gradients of the outputs, and let the pre-hooks replace them."""
        self.grad_outputs = _spread(self.output_places, grads, self.outputs)
        for hook in self.pre_hooks:
            answer = hook(self.module, self.grad_outputs)
            if answer is not None:
                self.grad_outputs = self._same_count(answer, self.outputs, "pre hook", "grad_output")
        passed_on = tuple(self.grad_outputs[place] for place in self.output_places)
        if self.input_places is None:
            self._without_inputs()
        return passed_on

    def _without_inputs(self) -> None:
        """Run the hooks at once: no gradient will reach the first identity node."""
        warn_outside(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details."
        )
        for hook in self.hooks:
            answer = hook(self.module, (None,) * self.inputs, self.grad_outputs)
            if answer is not None and not (isinstance(answer, tuple) and all(grad is None for grad in answer)):
                raise GraphError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None

    def _on_grad_inputs(self, grads: tuple, _: tuple):
        """Run the hooks on the gradients of the inputs, and let them replace these."""
        if self.grad_outputs is None:
            return None
        found = _spread(self.input_places, grads, self.inputs)
        for hook in self.hooks:
            answer = hook(self.module, found, self.grad_outputs)
            if answer is not None:
                answer = self._same_count(answer, self.inputs, "hook", "grad_input")
                for old, new in zip(found, answer):
                    if old is not None and new is not None:
                        check_answer(hook, new, old)
                found = answer
        self.grad_outputs = None
        return tuple(found[place] for place in self.input_places)

    @staticmethod
    def _same_count(answer: object, count: int, kind: str, what: str) -> tuple:
        if len(answer) != count:
            raise GraphError(
                f"Backward {kind} returned an invalid number of {what}, got {len(answer)}, but expected {count}"
            )
        return tuple(answer)


def _apply_hook_function(values: tuple, hook: Callable) -> tuple[tuple, list[int] | None]:
    """Pass the tensors among `values` through an identity node with a hook; return their indices, too."""
    places = [place for place, value in enumerate(values) if isinstance(value, TensorState)]
    tensors = [values[place] for place in places]
    if not (is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return values, None
    hooked = BackwardHookFunction.apply(*tensors)
    node = next(tensor.grad_fn for tensor in hooked if tensor.grad_fn is not None)
    node.register_hook(hook)
    replaced = list(values)
    for place, tensor in zip(places, hooked):
        replaced[place] = tensor
    return tuple(replaced) if type(values) is tuple else type(values)(*replaced), places


def _spread(places: list[int], grads: tuple, count: int) -> tuple:
    """Return gradients at the indices of their tensors, None elsewhere."""
    found = [None] * count
    for place, grad in zip(places, grads):
        found[place] = grad
    return tuple(found)


REMEDY = "Please use register_full_backward_hook to get the documented behavior."
GONE = "deprecated and will be removed in future versions. This hook will be missing"


def hook_last_node(module: object, args: tuple, result: object, hooks: list[Callable]) -> None:
    """Register `hooks` on the node of the first tensor in `result`, and warn if the module has more nodes than that."""
    node = _first_tensor(result).grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_with_module(module, hook))
    problem = _missing_gradients(args, result, node)
    if problem:
        warn_outside(problem, FutureWarning)


def _first_tensor(result: object) -> TensorState:
    while not isinstance(result, TensorState):
        if isinstance(result, dict):
            result = next(value for value in result.values() if isinstance(value, TensorState))
        else:
            result = result[0]
    return result


def _with_module(module: object, hook: Callable) -> Callable:
    def after_node(grad_inputs: tuple, grad_outputs: tuple):
        return hook(module, grad_inputs, grad_outputs)

    return after_node


def _missing_gradients(args: tuple, result: object, node: Node) -> str:
    """Return the warning: which gradients of the module differ from those of the node."""
    results = (result,) if isinstance(result, TensorState) else result
    if not _tensors_only(results):
        return (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is "
            f"{GONE} some of the grad_output. {REMEDY}"
        )
    if not _tensors_only(args):
        return (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
            f"Tensors is {GONE} some of the grad_input. {REMEDY}"
        )
    if len({one.grad_fn for one in results} - {None}) > 1:
        return (
            f"Using a non-full backward hook when outputs are generated by different autograd Nodes is {GONE} some "
            f"grad_output. {REMEDY}"
        )
    if {one.grad_fn for one in args} - {None} != {following for following, _ in node.next_functions}:
        return (
            f"Using a non-full backward hook when the forward contains multiple autograd Nodes is {GONE} some "
            f"grad_input. {REMEDY}"
        )
    return ""


def _tensors_only(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(one, TensorState) for one in values)
