"""backlight: autograd you can see through."""

import warnings as _warnings
from math import e, inf, nan, pi
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.autograd.variable import Variable
from backlight.devices import device
from backlight.devices import meta as _meta
from backlight.dispatch import torch_function as _torch_function
from backlight.dispatch.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from backlight.dispatch.arguments.checked import checked as _checked
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.dispatch.dispatcher import dispatching as _dispatching
from backlight.dispatch.torch_dispatch import torch_dispatch as _torch_dispatch
from backlight.dtypes import *
from backlight.engine.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from backlight.kernels.threads import *
from backlight.layouts import *
from backlight.ops.elementwise.activations import *
from backlight.ops.elementwise.arithmetic import *
from backlight.ops.elementwise.comparisons import *
from backlight.ops.elementwise.complex_numbers import *
from backlight.ops.elementwise.copying import *
from backlight.ops.elementwise.division import *
from backlight.ops.elementwise.filling import *
from backlight.ops.elementwise.powers import *
from backlight.ops.elementwise.rounding import *
from backlight.ops.elementwise.transcendental import *
from backlight.ops.elementwise.where_clamp import *
from backlight.ops.fourier.short_time import *
from backlight.ops.indexing.embedding import *
from backlight.ops.indexing.gather_scatter import *
from backlight.ops.indexing.getitem import *
from backlight.ops.indexing.index_selection import *
from backlight.ops.indexing.masked_indexing import *
from backlight.ops.indexing.masking import *
from backlight.ops.indexing.slicing import *
from backlight.ops.linalg.addmm_family import *
from backlight.ops.linalg.cholesky import *
from backlight.ops.linalg.contractions import *
from backlight.ops.linalg.determinants import *
from backlight.ops.linalg.einsum import *
from backlight.ops.linalg.householder import *
from backlight.ops.linalg.linear_systems import *
from backlight.ops.linalg.lu import *
from backlight.ops.linalg.matrix_functions import *
from backlight.ops.linalg.matrix_norms import *
from backlight.ops.linalg.matrix_products import *
from backlight.ops.linalg.pseudoinverse import *
from backlight.ops.linalg.qr import *
from backlight.ops.linalg.singular_values import *
from backlight.ops.loss.distances import *
from backlight.ops.nn.adaptive_pooling import *
from backlight.ops.nn.channel_norms import *
from backlight.ops.nn.convolution import *
from backlight.ops.nn.grid_sampling import *
from backlight.ops.nn.im2col import *
from backlight.ops.nn.linear import *
from backlight.ops.nn.native_norms import *
from backlight.ops.nn.normalization import *
from backlight.ops.nn.pooling import *
from backlight.ops.nn.softmax import *
from backlight.ops.out_variants import with_out as _with_out
from backlight.ops.random.dropout import *
from backlight.ops.random.gammas import *
from backlight.ops.reduction.extremes import *
from backlight.ops.reduction.finite_differences import *
from backlight.ops.reduction.norms import *
from backlight.ops.reduction.quantiles import *
from backlight.ops.reduction.reductions import *
from backlight.ops.reduction.scans import *
from backlight.ops.reduction.segment_reduce import *
from backlight.ops.reduction.sorting import *
from backlight.ops.reduction.statistics import *
from backlight.ops.shape.expanding import *
from backlight.ops.shape.flipping import *
from backlight.ops.shape.joining import *
from backlight.ops.shape.padding import *
from backlight.ops.shape.reshaping import *
from backlight.ops.shape.splitting import *
from backlight.ops.shape.striding import *
from backlight.ops.shape.transposing import *
from backlight.ops.shape.triangular import *
from backlight.ops.shape.view_copies import *
from backlight.ops.special.rare_functions import *
from backlight.ops.special.special_functions import *
from backlight.settings import *
from backlight.sizes import Size
from backlight.system.fork_safety import import_unforked as _import_unforked
from backlight.system.lazy_import import function_later as _function_later
from backlight.system.lazy_import import names_later as _names_later
from backlight.system.user_warnings import is_warn_always_enabled, set_warn_always
from backlight.tensor import generators as random
from backlight.tensor.creation import *
from backlight.tensor.dtype_queries import *
from backlight.tensor.factories import *
from backlight.tensor.generators import *
from backlight.tensor.low_rank import *
from backlight.tensor.mapped_files import *
from backlight.tensor.printing import *
from backlight.tensor.random_factories import *
from backlight.tensor.ranges import *
from backlight.tensor.storages import *
from backlight.tensor.tensor import Tensor
from backlight.tensor.window_functions import *
from backlight.torch_api.inplace_functions import *
from backlight.torch_api.legacy_constructors import *
from backlight.torch_api.removed_functions import *

from backlight import autograd, return_types  # isort: skip - after what it is made of

if _TYPE_CHECKING:
    from backlight import (
        amp,
        data,
        distributed,
        distributions,
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
        sparse,
        special,
        testing,
        utils,
    )
    from backlight.amp import autocast
    from backlight.serialization import load, save
    from backlight.tensor.interop.dlpack import asarray, from_dlpack
    from backlight.transforms.vmap.api import vmap

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
    "backlight.ops.reduction.histograms": "histogram histogramdd",
    "backlight.torch_api.aten_signatures": """
    alpha_dropout_ batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout_
    embedding_bag embedding_renorm_ feature_alpha_dropout_ feature_dropout_ hinge_embedding_loss instance_norm
    kl_div margin_ranking_loss norm_except_dim poisson_nll_loss rrelu rrelu_ triplet_margin_loss
    """,
    "backlight.ops.nn.recurrent_layers": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "backlight.serialization": "load save",
    "backlight.torch_api.stand_ins.checks": """
    _assert _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all
    _check_tensor_all_with _check_type _check_value _check_with
    """,
    "backlight.tensor.interop.dlpack": "asarray from_dlpack",
    "backlight.tensor.sparse.creation": "sparse_coo_tensor spmm",
}
_meta.make = _function_later("backlight.nn.meta_tensors", "meta_tensor")
_dispatching.sparse_call = _function_later("backlight.tensor.sparse.calls", "sparse_call")
_torch_function.overrides_state.install_for = _function_later("backlight.overrides", "dispatch_while_alive")
for _name in ("accumulate", "backward", "call", "made", "ones_like", "saved"):
    setattr(_torch_dispatch, _name, _function_later("backlight.transforms.torch_dispatch.interpreter", _name))
Tensor._make_wrapper_subclass = staticmethod(
    _function_later("backlight.transforms.torch_dispatch.interpreter", "make_wrapper_subclass")
)

_ROOMS = """
amp data distributed distributions fft func lens linalg masked nn optim overrides profiler serialization signal sparse
special testing utils
"""
_find, __dir__ = _names_later(
    __name__,
    {name: place for place, names in _BY_PLACE.items() for name in names.split()}
    | {
        "GradScaler": "backlight.amp",
        "Reranker": "backlight.explain.reranker",
        "autocast": "backlight.amp",
        "binomial": "backlight.tensor.binomial",
        "load_ipython_extension": "backlight.cli.programs.jupyter",
        "lobpcg": "backlight.ops.linalg.lobpcg",
        "vmap": "backlight.transforms.vmap.api",
    },
    _ROOMS.split(),
)


def __getattr__(name: str):
    if name == "__all__":  # of `from backlight import *`
        modules = {one for one, value in globals().items() if isinstance(value, _ModuleType)} | {*_ROOMS.split()}
        return [one for one in __dir__() if one[0] != "_" and one not in modules]
    if name.startswith("_foreach_"):
        module = _import_unforked("backlight.torch_api.foreach")
        if name in module.NAMES:
            return globals().setdefault(name, module.foreach(name))
    found = _find(name)
    if callable(found):
        found = globals()[name] = _checked(found, name)
    return found
