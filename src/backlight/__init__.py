"""backlight: autograd you can see through."""

from backlight.autograd.doors import Variable
from backlight.devices import device
from backlight.dtypes import (
    bfloat16,
    bool,
    double,
    dtype,
    finfo,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
)
from backlight.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from backlight.ops.arithmetic import *  # noqa: F403 - each family lists its public names in __all__
from backlight.ops.copying import *  # noqa: F403
from backlight.ops.pointwise import *  # noqa: F403
from backlight.ops.reductions import *  # noqa: F403
from backlight.ops.shaping import *  # noqa: F403
from backlight.ops.transposing import *  # noqa: F403
from backlight.sizes import Size
from backlight.tensor.creation import *  # noqa: F403
from backlight.tensor.printing import *  # noqa: F403
from backlight.tensor.tensor import Tensor

from backlight import autograd  # isort: skip - after what it is made of

__version__ = "0.1.0"
