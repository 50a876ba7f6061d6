"""Dropout."""

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = ["Dropout"]


class Dropout(Module):
    """While training, set elements to zero with probability `p` and scale the others by 1/(1 − p).

    Raises:
        ValueError: `p` is no probability.

    Source: Nitish Srivastava et al.: Improving neural networks by preventing co-adaptation, 2012, arXiv:1207.0580
    """

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueProblem(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with elements dropped; unchanged in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"p={self.p}, inplace={self.inplace}"
