"""The layers, one file per family."""

from backlight.nn.internal.attention import *
from backlight.nn.internal.lazy_layers import *
from backlight.nn.internal.margin_losses import *
from backlight.nn.internal.recurrent_cells import *
from backlight.nn.modules.activation import *
from backlight.nn.modules.adaptive import *
from backlight.nn.modules.batchnorm import *
from backlight.nn.modules.container import *
from backlight.nn.modules.conv import *
from backlight.nn.modules.distance import *
from backlight.nn.modules.dropout import *
from backlight.nn.modules.flatten import *
from backlight.nn.modules.linear import *
from backlight.nn.modules.loss import *
from backlight.nn.modules.module import *
from backlight.nn.modules.normalization import *
from backlight.nn.modules.padding import *
from backlight.nn.modules.pooling import *
from backlight.nn.modules.rnn import *
from backlight.nn.modules.sparse import *
from backlight.nn.modules.transformer import *
from backlight.nn.modules.upsampling import *
