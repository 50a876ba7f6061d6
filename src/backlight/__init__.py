"""backlight: autograd you can see through."""

import warnings as _warnings
from math import e, inf, nan, pi
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.autograd.variable import Variable
from backlight.devices import device
from backlight.dtypes import *
from backlight.fork_safety import import_unforked as _import_unforked
from backlight.graph.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from backlight.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from backlight.kernels.threads import *
from backlight.later import names_later as _names_later
from backlight.layouts import *
from backlight.notices import is_warn_always_enabled, set_warn_always
from backlight.ops.activations import *
from backlight.ops.adaptive_pooling import *
from backlight.ops.arguments.checked import checked as _checked
from backlight.ops.arguments.checked import with_checks as _with_checks
from backlight.ops.arithmetic import *
from backlight.ops.channel_norms import *
from backlight.ops.cholesky import *
from backlight.ops.comparisons import *
from backlight.ops.complex_numbers import *
from backlight.ops.contractions import *
from backlight.ops.convolution import *
from backlight.ops.copying import *
from backlight.ops.determinants import *
from backlight.ops.differences import *
from backlight.ops.distances import *
from backlight.ops.division import *
from backlight.ops.dropout import *
from backlight.ops.einsum import *
from backlight.ops.embedding import *
from backlight.ops.extremes import *
from backlight.ops.filling import *
from backlight.ops.flipping import *
from backlight.ops.indexing import *
from backlight.ops.joining import *
from backlight.ops.linear import *
from backlight.ops.lu import *
from backlight.ops.masked_indexing import *
from backlight.ops.masking import *
from backlight.ops.matrix_functions import *
from backlight.ops.matrix_norms import *
from backlight.ops.matrix_sums import *
from backlight.ops.medians import *
from backlight.ops.native_norms import *
from backlight.ops.normalisation import *
from backlight.ops.norms import *
from backlight.ops.out_variants import with_out as _with_out
from backlight.ops.padding import *
from backlight.ops.patching import *
from backlight.ops.pointwise import *
from backlight.ops.pooling import *
from backlight.ops.powers import *
from backlight.ops.products import *
from backlight.ops.pseudoinverse import *
from backlight.ops.qr import *
from backlight.ops.rare_functions import *
from backlight.ops.reductions import *
from backlight.ops.reflections import *
from backlight.ops.removed import *
from backlight.ops.repeating import *
from backlight.ops.rounding import *
from backlight.ops.sampling import *
from backlight.ops.scans import *
from backlight.ops.scattering import *
from backlight.ops.segments import *
from backlight.ops.selecting import *
from backlight.ops.selection import *
from backlight.ops.shaping import *
from backlight.ops.singular_values import *
from backlight.ops.slicing import *
from backlight.ops.softmax import *
from backlight.ops.solves import *
from backlight.ops.sorting import *
from backlight.ops.special import *
from backlight.ops.splitting import *
from backlight.ops.statistics import *
from backlight.ops.striding import *
from backlight.ops.transposing import *
from backlight.ops.triangles import *
from backlight.ops.view_copies import *
from backlight.settings import *
from backlight.sizes import Size
from backlight.tensor import random
from backlight.tensor.creation import *
from backlight.tensor.drawn import *
from backlight.tensor.filled import *
from backlight.tensor.inplace_functions import *
from backlight.tensor.kinds import *
from backlight.tensor.legacy import *
from backlight.tensor.low_rank import *
from backlight.tensor.printing import *
from backlight.tensor.random import *
from backlight.tensor.ranges import *
from backlight.tensor.tensor import Tensor
from backlight.tensor.windows import *

from backlight import autograd, return_types  # isort: skip - after what it is made of

if _TYPE_CHECKING:
    from backlight import (
        amp,
        data,
        fft,
        func,
        lens,
        linalg,
        masked,
        nn,
        optim,
        overrides,
        profiler,
        signal,
        special,
        testing,
        utils,
    )
    from backlight.amp import autocast
    from backlight.batching.vmapping import vmap
    from backlight.serialization import load, save
    from backlight.tensor.dlpack import asarray, from_dlpack

globals().update(_with_out(globals()))
globals().update(_with_checks(globals(), [*globals()]))

newaxis = None

# NumPy warns of 1/0, log(0) and overflow, of which PyTorch says nothing.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"backlight\.")

__version__ = "0.1.0"

# Imported when they are first asked for: half of the time that importing all of backlight takes is theirs.
_BY_PLACE = {
    "backlight.amp.autocasting": """
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
    get_autocast_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
    set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
    set_autocast_enabled
    """,
    "backlight.ops.histograms": "histogram histogramdd",
    "backlight.ops.kernel_calls": """
    alpha_dropout_ batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout_
    embedding_bag embedding_renorm_ feature_alpha_dropout_ feature_dropout_ hinge_embedding_loss instance_norm
    kl_div margin_ranking_loss norm_except_dim poisson_nll_loss rrelu rrelu_ triplet_margin_loss
    """,
    "backlight.ops.recurrent_layers": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "backlight.serialization": "load save",
    "backlight.tensor.dlpack": "asarray from_dlpack",
}
_ROOMS = """
amp data fft func lens linalg masked nn optim overrides profiler signal special testing utils
"""
_find, __dir__ = _names_later(
    __name__,
    {name: place for place, names in _BY_PLACE.items() for name in names.split()}
    | {
        "Reranker": "backlight.explain.reranker",
        "autocast": "backlight.amp",
        "binomial": "backlight.tensor.binomial",
        "lobpcg": "backlight.ops.lobpcg",
        "vmap": "backlight.batching.vmapping",
    },
    _ROOMS.split(),
)


def __getattr__(name: str):
    if name == "__all__":  # of `from backlight import *`
        modules = {one for one, value in globals().items() if isinstance(value, _ModuleType)} | {*_ROOMS.split()}
        return [one for one in __dir__() if one[0] != "_" and one not in modules]
    if name.startswith("_foreach_"):
        module = _import_unforked("backlight.tensor.foreach")
        if name in module.NAMES:
            return globals().setdefault(name, module.foreach(name))
    found = _find(name)
    if callable(found):
        found = globals()[name] = _checked(found, name)
    return found
