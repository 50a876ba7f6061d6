"""Modules as functions of their parameters: `functional_call`, and `stack_module_state` for ensembles."""

from collections.abc import Sequence

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.nn.modules.module import Module
from backlight.ops.shape.joining import stack
from backlight.tensor.tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args=None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Call a module with these tensors in place of its parameters and buffers.

    Afterwards the module has its own again. In-place writes of the call go to the given tensors; buffers that it
    replaces are replaced in the dict.

    Args:
        parameter_and_buffer_dicts: {name: tensor}, or several such dicts; other names keep the module's tensors. A
            name that the module does not have is a plain attribute of it during the call.
        args: the arguments, a tuple, or the only one.
        tie_weights: replace a tensor that the module has under several names under all of them.
        strict: raise unless all parameters and buffers, and no others, are named.

    Raises:
        ValueError: a name is in several dicts, or tied weights have several values.
        RuntimeError: with strict, names are missing or unknown.
        TypeError: a name is that of something else than a tensor, or what is to replace it is something else.
    """
    given = _one_dict(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _one_dict(dicts) -> dict:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueProblem(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(one, dict) for one in dicts):
        raise ValueProblem("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for one in dicts for name in one]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueProblem(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for one in dicts for name, tensor in one.items()}


class _replaced(Block):  # noqa: N801 - used as a function
    """Replace a module's tensors within the block."""

    def __init__(self, module: Module, given: dict, tie_weights: bool, strict: bool):
        self.module, self.given = module, given
        self.wanted = _with_tied(module, given) if tie_weights else given
        self.slots = _slots(module)
        if strict:
            problems = []
            unexpected = [name for name in self.wanted if name not in self.slots]
            missing = [name for name in self.slots if name not in self.wanted]
            if unexpected:
                problems.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
            if missing:
                problems.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
            if problems:
                said = "\n\t".join(problems)
                raise GraphError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{said}")

    def _block_state(self) -> dict:
        return {}

    def _block_change(self, own: dict) -> None:
        for name, tensor in self.wanted.items():
            registry, key = place = self.slots.get(name) or _place_of_attribute(self.module, name)
            if not (tensor is None or isinstance(tensor, TensorState)):
                raise ArgumentError(f"{tensor} is not an instance of torch.Tensor; a parameter is replaced by a tensor")
            present = registry.get(key, _ABSENT)
            own[name] = place, present
            registry[key] = tensor

    def _block_restore(self, own: dict) -> None:
        for name in list(own):
            (registry, key), tensor = own[name]
            if name in self.given:
                self.given[name] = registry[key]
            if tensor is _ABSENT:
                del registry[key]
            else:
                registry[key] = tensor
            del own[name]  # atomic with the assignment before: there is no call between


_ABSENT = object()


def _place_of_attribute(module: Module, name: str) -> tuple:
    """Return where a plain attribute is stored: a tensor, or a missing attribute that the call adds."""
    *path, key = name.split(".")
    for place, part in enumerate(path):
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
        if not isinstance(module, Module):
            raise ArgumentError(
                f"submodule `{'.'.join(path[: place + 1])}`: {module} is not an instance of torch.nn.Module"
            )
    if not key:
        raise KeyError('tensor name can\'t be empty string ""')
    present = getattr(module, key, None)
    if hasattr(module, key) and not isinstance(present, TensorState):
        raise ArgumentError(f"attribute `{key}`: {present} is not an instance of torch.Tensor")
    return vars(module), key


def _slots(module: Module) -> dict:
    """Return where each parameter and buffer is stored: {name: (registry, key)}."""
    found = {}
    for prefix, one in module.named_modules(remove_duplicate=False):
        for registry in (one._parameters, one._buffers):
            for key, tensor in registry.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = (registry, key)
    return found


def _with_tied(module: Module, given: dict) -> dict:
    """Return the tensors given, those of tied weights under all their names."""
    names: dict[int, list[str]] = {}
    for name, (registry, key) in _slots(module).items():
        names.setdefault(id(registry[key]), []).append(name)
    wanted = dict(given)
    for tied in names.values():
        values = [given[name] for name in tied if name in given]
        if len({id(one) for one in values}) > 1:
            raise ValueProblem(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for name in tied if values else ():
            wanted[name] = values[0]
    return wanted


def stack_module_state(models: Sequence[Module]) -> tuple[dict, dict]:
    """Return the parameters and the buffers of several models of one class, each stacked: ({name: tensor}, the same).

    With `vmap` over `functional_call` they make one call of all models: an ensemble.

    Raises:
        RuntimeError: there is no model, or they differ in class, in training mode, or in what requires grad.
    """
    if not len(models):
        raise GraphError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise GraphError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise GraphError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return tuple(
        {name: _stacked([one[name] for one in each], name) for name in each[0]} for each in (parameters, buffers)
    )


def _stacked(tensors, name: str) -> Tensor:
    """Return a leaf that holds the tensors, and requires grad if they do."""
    if len({tensor.requires_grad for tensor in tensors}) > 1:
        raise GraphError(f"Expected {name} from each model to have the same .requires_grad")
    made = stack([tensor.detach() for tensor in tensors])
    return made.requires_grad_() if tensors[0].requires_grad else made
