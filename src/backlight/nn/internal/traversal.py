"""Traversal of a module and its descendants: names, members, and functions applied to each."""

from collections.abc import Callable, Iterator

from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor


class Tree:
    """Module's methods that traverse its descendants."""

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple]:
        """Yield this module and all below it with their dotted names, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple]:
        """Yield the modules directly below this one with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator:
        """Yield the modules directly below this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield parameters with their dotted names: of this module, or with `recurse` of all below it too."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield parameters, each once, as an optimizer takes them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield buffers with their dotted names: of this module, or with `recurse` of all below it too."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self, get_members_fn: Callable, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple]:
        """Yield what `get_members_fn(module)` gives for each module, pairs of name and member, with dotted names."""
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        seen = set()
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield _joined(path, name), member

    def apply(self, fn: Callable):
        """Call `fn(module)` on every module below this one and then on this one; return this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable, recurse: bool = True):
        """Replace the memory of every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                parameter.data = fn(parameter)
                if parameter.grad is not None:
                    parameter.grad.data = fn(parameter.grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def _replace_tensors(self, made: Callable) -> None:
        """Put other tensors in place of all parameters and buffers; one used twice becomes two, as in PyTorch."""
        for module in self.modules():
            for held in (module._parameters, module._buffers):
                held.update({name: made(tensor) for name, tensor in held.items() if tensor is not None})

    def train(self, mode: bool = True):
        """Set `training` on this module and all below it: used by dropout and similar layers.

        Raises:
            ValueError: `mode` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueProblem(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode, which is `train(False)`. Gradients are recorded as before."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        """Set `requires_grad` of every parameter: False freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradient of every parameter, or fill it with zeros."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = grad.detach()
                parameter.grad.zero_()


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
