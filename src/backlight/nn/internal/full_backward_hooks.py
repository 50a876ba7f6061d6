"""Full backward hooks: hooks on the gradients of one call of a module.

NOTE [Two identity nodes]
The inputs pass through one identity node and the outputs through another. Backward runs the outputs' node first, which
stores the gradients of the outputs, and the inputs' node last, after all nodes of the module.
"""

import warnings
from collections.abc import Callable

from backlight.autograd.function import Function
from backlight.engine.grad_mode import is_grad_enabled
from backlight.engine.hook_calls import check_answer
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
        """Return the result, a tensor or a tuple, with its tensors passed through the second identity node."""
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
    return tuple(replaced), places


def _spread(places: list[int], grads: tuple, count: int) -> tuple:
    """Return gradients at the indices of their tensors, None elsewhere."""
    found = [None] * count
    for place, grad in zip(places, grads):
        found[place] = grad
    return tuple(found)
