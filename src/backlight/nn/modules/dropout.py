"""Dropout of elements and of full channels."""

from backlight.errors import ValueProblem
from backlight.nn import functional as F
from backlight.nn.modules.module import Layer
from backlight.tensor.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropping(Layer):
    """Base class of dropout layers, with the options `p` and `inplace`; the identity in evaluation mode.

    Raises:
        ValueError: `p` is not between 0 and 1.
    """

    _shown = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueProblem(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace


class Dropout(Dropping):
    """While training, set elements to zero with probability `p` and scale the others by 1/(1 − p).

    Source: Nitish Srivastava et al.: Improving neural networks by preventing co-adaptation, 2012, arXiv:1207.0580
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(Dropping):
    """Drop full channels of (channels, length) or (batch, channels, length).

    Source: Jonathan Tompson et al.: Efficient Object Localization Using Convolutional Networks, 2014, arXiv:1411.4280
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropping):
    """Drop full channels of (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropping):
    """Drop full channels of (channels, depth, height, width), with or without a batch dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropping):
    """Set dropped elements to SELU's saturation value, so that mean and variance are kept.

    Source: Günter Klambauer et al.: Self-Normalizing Neural Networks, 2017, arXiv:1706.02515
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Dropping):
    """Set dropped channels to SELU's saturation value, so that mean and variance are kept."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
