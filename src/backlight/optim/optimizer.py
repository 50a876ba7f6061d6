"""`Optimizer`: parameter groups, their state, and how both are saved.

NOTE [Steps write into memory]
A step changes the arrays of parameters and of its own state in place, and counts the write in the parameter's storage,
so that a backward through a graph from before the step fails as it does in PyTorch.

NOTE [Complex parameters]
A complex parameter is updated as the pair of its real and imaginary parts, as PyTorch does by `view_as_real`: the
function of `updater` gets arrays of the parts. The state has the parameter's shape and dtype; `parts` in
optim/options.py shows it in the same way.

NOTE [Writing an optimizer]
Write `updater(group)`: it reads the group's options once and returns a function that changes one parameter. Or override
`step`, as for PyTorch. `differentiable_updater(group)` is the same update in ordinary operations, for the option
`differentiable=True`: the parameter, which then is no leaf, is changed in place, and the state is replaced by tensors
with a history.
"""

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from itertools import chain

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.grad_mode import enable_grad
from backlight.engine.hooks import RemovableHandle
from backlight.engine.provenance import user_place
from backlight.engine.storage import before_write, guarding
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import ArgumentError, GraphError, MissingMethodError, ValueProblem
from backlight.kernels.elementwise.complex_parts import parts_of
from backlight.kernels.sparse_array import SparseArray, is_sparse
from backlight.kernels.state_blocks import silent_floats
from backlight.optim.options import numbers_as_tensors
from backlight.optim.step_hooks import (
    EVERYWHERE,
    between_hooks,
    hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from backlight.tensor.tensor import Tensor

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict]
ParamsT = Parameters  # PyTorch's name
Update = Callable[[Tensor, np.ndarray, np.ndarray], None]  # of a parameter, its array, and its gradient's array
SparseUpdate = Callable[[Tensor, np.ndarray, SparseArray], None]  # of a parameter, its array, and its sparse gradient
DifferentiableUpdate = Callable[[Tensor, Tensor], None]  # of a parameter and its gradient


class _Required:
    """The default of an option that each group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


# The dictionaries of an optimizer's hooks, by the ids of their handles
HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
NOT_COPIED = frozenset({"step", *HOOKS})
# Options that older state dicts lack, with the values that they had before there was an option
ADDED_OPTIONS = {
    **{"momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False},
    **{"decoupled_weight_decay": False, "capturable": False, "fused": None},
}


class Optimizer:
    """Base class of all optimizers: groups, state, saving (see NOTE [Writing an optimizer]).

    Args:
        params: tensors, (name, tensor) pairs, or dicts with the key "params" and their own options.
        defaults: the options of groups that do not set them.

    Raises:
        ValueError: there are no parameters, or one is no leaf.
        TypeError: `params` is one tensor, or holds something that is no tensor.
    """

    _captured = "params and state_steps"  # which tensors PyTorch's message about capturable=True names
    _captured_also = ", 'xla'"  # and which devices after the others
    _differentiable_foreach = False  # whether foreach=True and differentiable=True go together
    _added_options: Mapping[str, object] = ADDED_OPTIONS
    _instead_of_sparse = ""  # which optimizer to take for sparse gradients, in the error

    def __init__(self, params: Parameters, defaults: dict):
        if isinstance(params, TensorState):
            raise ArgumentError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}; pass [tensor]"
            )
        self.defaults = defaults
        self.state: defaultdict = defaultdict(dict)
        self.param_groups: list[dict] = []
        self._prepare_hooks()
        groups = list(params)
        if not groups:
            raise ValueProblem(
                "optimizer got an empty parameter list; layers in a plain list or dict are not seen by parameters(): "
                "use nn.ModuleList or nn.ModuleDict"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict:
        """Return the state for copies and pickles: all but hooks, and the `step` that a schedule has wrapped."""
        return {name: value for name, value in vars(self).items() if name not in NOT_COPIED}

    def __setstate__(self, state: dict) -> None:
        """Take a state, of a pickle or a state dict; options that it lacks, being older, get their first values."""
        self.__dict__.update(state)
        self._prepare_hooks()
        for group in self.param_groups:
            for name, value in self._added_options.items():
                if name in self.defaults:
                    group.setdefault(name, value)
            if "differentiable" in self.defaults:  # of ours: they had plain numbers once
                for param in group["params"]:
                    numbers_as_tensors(self.state.get(param, {}))

    def _prepare_hooks(self) -> None:
        """Make the dictionaries of hooks, and let a step of the class's own run them."""
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        if not hasattr(type(self).step, "hooked"):
            type(self).step = hooked(type(self).step)

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with their own options.

        Raises:
            TypeError: the group is no dict, or its parameters are a set or no tensors.
            ValueError: a parameter is no leaf, or is in another group already.
        """
        if not isinstance(param_group, dict):
            raise ArgumentError(f"param_group must be a dict, but got {type(param_group)}")
        names, param_group["params"] = _names_and_tensors(param_group["params"])
        if names:
            param_group["param_names"] = names
        self._check_parameters(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueProblem(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_against_other_groups(param_group)
        self.param_groups.append(param_group)

    def _check_parameters(self, params: list) -> None:
        for param in params:
            if not isinstance(param, TensorState):
                kind = type(param)
                name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
                raise ArgumentError(f"optimizer can only optimize Tensors, but one of the params is {name}")
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueProblem(
                    "can't optimize a non-leaf Tensor; it was computed by "
                    f"{param.grad_fn.name()} at {param.grad_fn.where}: optimize what it was computed from, or "
                    ".detach().requires_grad_() it"
                )

    def _check_against_other_groups(self, param_group: dict) -> None:
        numbers = {id(param) for param in param_group["params"]}
        if len(numbers) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=5,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                what = "with names" if "param_names" in param_group else "without names"
                raise ValueProblem(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{what} to the optimizer"
                )
            if any(id(param) in numbers for param in group["params"]):
                raise ValueProblem("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradient of every parameter, or fill it with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param._grad = None
                elif param._grad is not None:
                    param._grad._edge = None
                    param._grad.zero_()

    def step(self, closure: Callable | None = None) -> Tensor | float | None:
        """Update every parameter that has a gradient.

        Args:
            closure: clears the gradients, computes the loss, calls backward and returns the loss.

        Returns:
            What `closure` returned.
        """
        hooks = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        if (hooks or EVERYWHERE.before or EVERYWHERE.after) and type(self).step is Optimizer.step:
            return between_hooks(Optimizer._step, (self,) if closure is None else (self, closure), {})
        return self._step(closure)

    step.hooked = True

    def _step(self, closure: Callable | None = None) -> Tensor | float | None:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("capturable") and any(param._grad is not None for param in group["params"]):
                self.refuse_capturable()
        if self.defaults.get("differentiable"):
            for group in self.param_groups:
                self.update_recorded(group, _with_gradients(group))
            return loss
        if guarding.blocks:
            before_write(param for group in self.param_groups for param in group["params"] if param._grad is not None)
        place = user_place()
        for group in self.param_groups:
            self.update_group(group, _with_gradients(group), place)
        return loss

    def update_group(self, group: dict, given: list[tuple[Tensor, Tensor]], place: tuple | None = None) -> None:
        """Update parameters by their gradients and a group's options.

        Args:
            place: the user's line, which an error about overwritten memory names.
        """
        name, place = f"{type(self).__name__}.step", place or user_place()
        with silent_floats():
            sparse = self.sparse_updater(group) if any(is_sparse(grad) for _, grad in given) else None
            update = self.updater(group)
            for param, grad in given:
                begin_write(param, name, place)
                if sparse is not None and is_sparse(grad):
                    sparse(param, writable(param), grad._data)
                else:
                    update(param, parts_of(writable(param)), parts_of(grad._data))
                end_write(param)

    def refuse_capturable(self) -> None:
        """Raise PyTorch's error: steps are captured on other devices only."""
        raise AssertionError(
            f"If capturable=True, {self._captured} must be on supported devices: "
            f"['cuda', 'xpu', 'hpu', 'privateuseone'{self._captured_also}]; all tensors here are on the CPU: leave it "
            "False"
        )

    def update_recorded(self, group: dict, given: list[tuple[Tensor, Tensor]]) -> None:
        """Update parameters by ordinary operations, which are recorded.

        Raises:
            AssertionError: `foreach` is set, which this optimizer has not for recorded steps.
        """
        with enable_grad():
            if group.get("foreach") and not self._differentiable_foreach:
                raise AssertionError("_foreach ops don't support autograd")
            update = self.differentiable_updater(group)
            for param, grad in given:
                update(param, grad)

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        """Return the function that updates one parameter of a group in place, by its gradient, a tensor.

        Raises:
            NotImplementedError: the subclass has none.
        """
        raise MissingMethodError(f"{type(self).__name__} must have a method differentiable_updater(group)")

    def updater(self, group: dict) -> Update:
        """Return the function that updates one parameter of a group, by the group's options.

        Raises:
            NotImplementedError: the subclass has none.
        """
        raise MissingMethodError(f"{type(self).__name__} must have a method updater(group)")

    def sparse_updater(self, group: dict) -> SparseUpdate:
        """Return the function that updates one parameter by a sparse gradient, or raise that there is none."""
        name = "Adam" if self._instead_of_sparse else type(self).__name__
        raise GraphError(f"{name} does not support sparse gradients{self._instead_of_sparse}")

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` collects the state.

        Args:
            prepend: call it before the hooks that are there.
        """
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` when `state_dict` has collected it; it may return another one."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict` loads it; it may return another one."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` when `load_state_dict` is done."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict:
        """Return the state and the groups, with a number in place of each parameter."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        params = list(chain.from_iterable(group["params"] for group in self.param_groups))
        numbers: dict[int, int] = {}
        for number, param in enumerate(params):
            numbers.setdefault(id(param), number)
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[id(param)] for param in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {numbers[id(key)] if isinstance(key, TensorState) else key: value for key, value in self.state.items()}
        return _changed_by(self._optimizer_state_dict_post_hooks, self, {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict) -> None:
        """Load state and options from the `state_dict` of an optimizer over similar parameters.

        Raises:
            ValueError: the groups are not of the same number and sizes.
        """
        state_dict = _changed_by(self._optimizer_load_state_dict_pre_hooks, self, state_dict.copy())
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueProblem(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)}, and the optimizer has {len(self.param_groups)}"
            )
        for own, other in zip(self.param_groups, saved):
            if len(own["params"]) != len(other["params"]):
                raise ValueProblem(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"{len(other['params'])} parameters for {len(own['params'])}"
                )
        own_params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(chain.from_iterable(group["params"] for group in saved), own_params))
        state: defaultdict = defaultdict(dict)
        for key, value in state_dict["state"].items():
            param = by_number.get(key)
            state[key if param is None else param] = value if param is None else _fitted(value, param)
        for own, other in zip(self.param_groups, saved):
            other["params"] = own["params"]
            if "param_names" in own:
                other.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] * (number > 0) + [f"Parameter Group {number}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _registered(hooks: OrderedDict, hook: Callable, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _changed_by(hooks: dict, optimizer: Optimizer, state_dict: dict) -> dict:
    """Return a state dict as hooks leave it."""
    for hook in list(hooks.values()):
        answer = hook(optimizer, state_dict)
        state_dict = state_dict if answer is None else answer
    return state_dict


def _names_and_tensors(params: Tensor | Iterable) -> tuple[list[str], list]:
    """Split the parameters of a group into names, if given, and tensors."""
    if isinstance(params, TensorState):
        return [], [params]
    if isinstance(params, set):
        raise ArgumentError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = list(params)
    names = [param[0] for param in params if isinstance(param, tuple)]
    if names and len(names) != len(params):
        raise ValueProblem("all optimizer params should be with/without names. Some param names are missing")
    return names, [param[1] for param in params] if names else params


def _with_gradients(group: dict) -> list[tuple[Tensor, Tensor]]:
    return [(param, param._grad) for param in group["params"] if param._grad is not None]


def _fitted(value: object, param: Tensor, name: str | None = None) -> object:
    """Return a part of a parameter's state, with tensors cast to its dtype if that is real, except the step count.

    What has the dtype already is not copied: as in PyTorch, both optimizers then have the same tensors.
    """
    if isinstance(value, TensorState):
        return value.to(param.dtype) if name != "step" and param.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _fitted(each, param, key) for key, each in value.items()}
    return type(value)(_fitted(each, param) for each in value) if type(value) in (list, tuple, set) else value
