"""The layers, a family a file."""

from backlight.nn.modules.activation import *  # noqa: F403 - each family lists its public names in __all__
from backlight.nn.modules.container import *  # noqa: F403
from backlight.nn.modules.dropout import *  # noqa: F403
from backlight.nn.modules.embedding import *  # noqa: F403
from backlight.nn.modules.flatten import *  # noqa: F403
from backlight.nn.modules.linear import *  # noqa: F403
from backlight.nn.modules.loss import *  # noqa: F403
from backlight.nn.modules.module import *  # noqa: F403
from backlight.nn.modules.normalisation import *  # noqa: F403
from backlight.nn.modules.parameters import *  # noqa: F403
