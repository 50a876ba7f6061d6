"""The layers, a family a file."""

from backlight.nn.modules.activation import *
from backlight.nn.modules.container import *
from backlight.nn.modules.dropout import *
from backlight.nn.modules.embedding import *
from backlight.nn.modules.flatten import *
from backlight.nn.modules.linear import *
from backlight.nn.modules.loss import *
from backlight.nn.modules.module import *
from backlight.nn.modules.normalisation import *
from backlight.nn.modules.parameters import *
