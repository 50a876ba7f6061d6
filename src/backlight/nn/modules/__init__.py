"""The layers, a family a file."""

from backlight.nn.modules.activation import *
from backlight.nn.modules.adaptive_softmax import *
from backlight.nn.modules.attention import *
from backlight.nn.modules.bag import *
from backlight.nn.modules.cell import *
from backlight.nn.modules.channel_norms import *
from backlight.nn.modules.container import *
from backlight.nn.modules.convolution import *
from backlight.nn.modules.distance import *
from backlight.nn.modules.dropout import *
from backlight.nn.modules.embedding import *
from backlight.nn.modules.flatten import *
from backlight.nn.modules.fractional_pooling import *
from backlight.nn.modules.lazy_layers import *
from backlight.nn.modules.linear import *
from backlight.nn.modules.loss import *
from backlight.nn.modules.margin_loss import *
from backlight.nn.modules.module import *
from backlight.nn.modules.normalisation import *
from backlight.nn.modules.padding import *
from backlight.nn.modules.parameters import *
from backlight.nn.modules.pooling import *
from backlight.nn.modules.rectifier import *
from backlight.nn.modules.recurrent import *
from backlight.nn.modules.transformer import *
from backlight.nn.modules.upsampling import *
