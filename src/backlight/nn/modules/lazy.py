"""Modules that learn the size of their input from the first one they see.

NOTE [Lazy modules]
A lazy module has uninitialized parameters and a class of its own. Its first call, or a state_dict, gives them their
shapes; at the first call it also becomes an ordinary module: its class changes to `cls_to_become`.
"""

from backlight.errors import GraphError, MissingMethodError
from backlight.nn.modules.module import Module
from backlight.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Make a module lazy: inherit from this first, then from the module.

    The attribute `cls_to_become` is the class that it becomes (None: the class does not change), and
    `initialize_parameters(*inputs)` materializes its parameters for the inputs of the first call.
    """

    cls_to_become: type | None = None

    def __call__(self, *args, **kwargs):
        if "_seen_input" in self.__dict__:
            return Module.__call__(self, *args, **kwargs)
        self._infer_parameters(args, kwargs)
        return self(*args, **kwargs)

    def _infer_parameters(self, args: tuple, kwargs: dict) -> None:
        """Initialize the parameters for the first input, and become an ordinary module."""
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise GraphError(f"module {self._get_name()} has not been fully initialized")
        if self.cls_to_become is None:
            self._seen_input = True
        else:
            self.__class__ = self.cls_to_become

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Materialize the parameters for the inputs of the first call; subclasses override this.

        Raises:
            NotImplementedError: the subclass does not override it.
        """
        raise MissingMethodError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Tell whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give parameters the shapes that the state has, and load it."""
        for name, own in (*self._parameters.items(), *self._buffers.items()):
            value = state_dict.get(prefix + name)
            if is_lazy(own) and value is not None and not is_lazy(value):
                own.materialize(tuple(value.shape))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
