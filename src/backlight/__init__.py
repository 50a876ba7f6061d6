"""backlight: autograd you can see through."""

import warnings as _warnings
from math import e, inf, nan, pi

from backlight.autograd.doors import Variable
from backlight.devices import device
from backlight.dtypes import *  # noqa: F403
from backlight.graph.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from backlight.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from backlight.layouts import *  # noqa: F403
from backlight.notices import is_warn_always_enabled, set_warn_always
from backlight.ops.arithmetic import *  # noqa: F403 - each family lists its public names in __all__
from backlight.ops.channel_norms import *  # noqa: F403
from backlight.ops.dropout import *  # noqa: F403
from backlight.ops.linear import *  # noqa: F403
from backlight.ops.distances import *  # noqa: F403
from backlight.ops.matrix_sums import *  # noqa: F403
from backlight.ops.contractions import *  # noqa: F403
from backlight.ops.einsum import *  # noqa: F403
from backlight.ops.copying import *  # noqa: F403
from backlight.ops.embedding import *  # noqa: F403
from backlight.ops.normalisation import *  # noqa: F403
from backlight.ops.pointwise import *  # noqa: F403
from backlight.ops.activations import *  # noqa: F403
from backlight.ops.special import *  # noqa: F403
from backlight.ops.selection import *  # noqa: F403
from backlight.ops.powers import *  # noqa: F403
from backlight.ops.comparisons import *  # noqa: F403
from backlight.ops.extremes import *  # noqa: F403
from backlight.ops.medians import *  # noqa: F403
from backlight.ops.norms import *  # noqa: F403
from backlight.ops.reductions import *  # noqa: F403
from backlight.ops.scans import *  # noqa: F403
from backlight.ops.sorting import *  # noqa: F403
from backlight.ops.statistics import *  # noqa: F403
from backlight.ops.products import *  # noqa: F403
from backlight.ops.shaping import *  # noqa: F403
from backlight.ops.softmax import *  # noqa: F403
from backlight.ops.flipping import *  # noqa: F403
from backlight.ops.indexing import *  # noqa: F403
from backlight.ops.joining import *  # noqa: F403
from backlight.ops.masking import *  # noqa: F403
from backlight.ops.padding import *  # noqa: F403
from backlight.ops.repeating import *  # noqa: F403
from backlight.ops.scattering import *  # noqa: F403
from backlight.ops.selecting import *  # noqa: F403
from backlight.ops.slicing import *  # noqa: F403
from backlight.ops.splitting import *  # noqa: F403
from backlight.ops.striding import *  # noqa: F403
from backlight.ops.triangles import *  # noqa: F403
from backlight.ops.transposing import *  # noqa: F403
from backlight.sizes import Size
from backlight.tensor.creation import *  # noqa: F403
from backlight.tensor.drawn import *  # noqa: F403
from backlight.tensor.filled import *  # noqa: F403
from backlight.tensor.kinds import *  # noqa: F403
from backlight.tensor.legacy import *  # noqa: F403
from backlight.tensor.printing import *  # noqa: F403
from backlight.tensor.random import *  # noqa: F403
from backlight.tensor.ranges import *  # noqa: F403
from backlight.tensor import random
from backlight.tensor.tensor import Tensor

from backlight import autograd, data, linalg, nn, optim, return_types, special  # isort: skip - after what it is made of

newaxis = None

# NumPy warns of 1/0, log(0) and overflow, of which PyTorch says nothing.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"backlight\.")

__version__ = "0.1.0"
