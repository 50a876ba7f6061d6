"""PyTorch's `torch.utils`."""

from typing import TYPE_CHECKING

from backlight.system.lazy_import import names_later
from backlight.utils import averaging, checkpoint, dlpack

if TYPE_CHECKING:
    from backlight.utils import _python_dispatch, _pytree, benchmark, hooks

__all__ = ["averaging", "benchmark", "checkpoint", "dlpack", "hooks"]

__getattr__, __dir__ = names_later(__name__, {}, ("_python_dispatch", "_pytree", "benchmark", "hooks"))
