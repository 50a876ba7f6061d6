"""A module's parameters, buffers and children, stored in dicts and read as attributes.

NOTE [Three registries]
A `Parameter` assigned as an attribute goes into `_parameters`, a `Module` into `_modules`, a tensor under a registered
name into `_buffers`; everything else is an ordinary attribute. A name is in one registry only: the last assignment
wins.
"""

from collections import OrderedDict
from collections.abc import Callable

from backlight.engine.hooks import RemovableHandle
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ValueProblem
from backlight.nn.parameter import Buffer, Parameter
from backlight.tensor.tensor import Tensor


def typename(value: object) -> str:
    """Return the name of a value's type as PyTorch's messages give it: `torch.FloatTensor`, `int`, `package.Class`."""
    if type(value) is Tensor:
        return value.type()
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class RegistrationHooks:
    """Hooks, common to all modules, that are called when one gets a parameter, a buffer or a child."""

    def __init__(self):
        self.parameter = OrderedDict()
        self.buffer = OrderedDict()
        self.module = OrderedDict()


REGISTRATION = RegistrationHooks()


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a module gets a parameter; it may return another one."""
    return RemovableHandle(REGISTRATION.parameter, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module gets a buffer; it may return another one."""
    return RemovableHandle(REGISTRATION.buffer, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module gets a child; it may return another one."""
    return RemovableHandle(REGISTRATION.module, hook)


def _passed(hooks: dict, module: object, name: str, value: object):
    """Return a value as the hooks on its registration leave it."""
    for hook in list(hooks.values()):
        answer = hook(module, name, value)
        value = value if answer is None else answer
    return value


class Registry:
    """Module's registration of parameters, buffers and children (see NOTE [Three registries])."""

    dump_patches = False
    call_super_init = False  # whether __init__ calls the next class's, too, with the arguments that are left

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            kind = type(self).__name__
            if kwargs:
                raise ArgumentError(f"{kind}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise ArgumentError(f"{kind}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        keep = object.__setattr__  # not our own, which would look into the registries that are made here
        keep(self, "training", True)
        keep(self, "_parameters", {})
        keep(self, "_buffers", {})
        keep(self, "_non_persistent_buffers_set", set())
        keep(self, "_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __getattr__(self, name: str):
        """Find a parameter, buffer or child; not called for ordinary attributes."""
        own = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry in own and name in own[registry]:
                return own[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: object) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._require_registries("parameters")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected); "
                    "wrap it: torch.nn.Parameter(…), or change its memory in a torch.no_grad() block"
                )
            self.register_parameter(name, None)
        elif _is_module(value):
            self._require_registries("module")
            self._forget(name, "_parameters", "_buffers")
            own["_modules"][name] = _passed(REGISTRATION.module, self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            own["_modules"][name] = _passed(REGISTRATION.module, self, name, None)
        elif isinstance(value, Buffer):
            self._require_registries("buffer")
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif name in own.get("_buffers", ()):
            if not (value is None or isinstance(value, TensorState)):
                raise ArgumentError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                    "expected)"
                )
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = [*super().__dir__(), *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in set(names) if not name[0].isdigit())

    def _require_registries(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what} before Module.__init__() call; begin your __init__ with super().__init__()"
            )

    def _forget(self, name: str, *registries: str) -> None:
        """Remove a name from its old registry before it moves to another."""
        own = self.__dict__
        own.pop(name, None)
        for registry in registries:
            own[registry].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _check_name(self, name: str, kind: str, registry: dict) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None keeps the name and no parameter.

        Raises:
            TypeError: `param` is not a Parameter.
            ValueError: it was computed by an op, so it is not a leaf.
            KeyError: the name is empty, has a dot or is taken.
        """
        self._require_registries("parameter")
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueProblem(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = None if param is None else _passed(REGISTRATION.parameter, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor to the module's state that is not a parameter.

        Args:
            persistent: whether it is part of `state_dict()`.

        Raises:
            TypeError: `tensor` is not a tensor.
            KeyError: the name is empty, has a dot or is taken.
        """
        self._require_registries("buffer")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, TensorState):
            raise ArgumentError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _passed(REGISTRATION.buffer, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: object) -> None:
        """Add a child under a name; None keeps the name and no module.

        Raises:
            TypeError: `module` is not a Module.
            KeyError: the name is empty, has a dot or is taken.
        """
        if not (module is None or _is_module(module)):
            raise ArgumentError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = _passed(REGISTRATION.module, self, name, module)

    def register_module(self, name: str, module: object) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def get_submodule(self, target: str):
        """Return the module at a dotted path; the empty path is this module.

        Raises:
            AttributeError: there is none.
        """
        found = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not _is_module(found):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: object, strict: bool = False) -> None:
        """Set the module at a dotted path; with `strict` it must exist already.

        Raises:
            ValueError: the path is empty, or `module` is not a Module.
            AttributeError: the path does not exist.
        """
        if target == "":
            raise ValueProblem("Cannot set the submodule without a target name!")
        if not _is_module(module):
            raise ValueProblem(f'"module" is not an nn.Module, found {type(module)}')
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path.

        Raises:
            AttributeError: there is none.
        """
        found = self._named(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path.

        Raises:
            AttributeError: there is none.
        """
        found = self._named(target)
        path, _, name = target.rpartition(".")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _named(self, target: str):
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return getattr(owner, name)


def _is_module(value: object) -> bool:
    return isinstance(value, Registry)
