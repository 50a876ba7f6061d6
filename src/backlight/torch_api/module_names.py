"""The table of PyTorch's module names: which module here a script gets for each of them.

NOTE [Standing in for PyTorch]
While a script runs, an import finder resolves every import of `torch`, `functorch` and `torchvision` to stand-in
modules. A stand-in has the names of one module here, and the submodules by this table; other names raise an error that
says so. Outside of a run nothing is installed, and PyTorch itself is never imported.
"""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

from backlight.ops import aten
from backlight.settings import deterministic
from backlight.torch_api.stand_ins import accelerators
from backlight.torch_api.stand_ins.versions import VERSION, TorchVersion, parallel_info, show

OLDER = "backlight.amp.older"
STAND_INS = "backlight.torch_api.stand_ins"

# The files of torch.nn.modules, with the names that are in other files of backlight.nn
_NN_MODULES = {
    "activation": "Threshold RReLU Hardsigmoid Hardswish Hardshrink Softshrink MultiheadAttention PReLU Tanhshrink",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d LazyBatchNorm1d BatchNorm2d LazyBatchNorm2d BatchNorm3d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "conv": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"
    ),
    "container": "ParameterList ParameterDict",
    "fold": "Fold Unfold",
    "instancenorm": (
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"
    ),
    "linear": "LazyLinear",
    "loss": (
        "HingeEmbeddingLoss MultiLabelMarginLoss SoftMarginLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss "
        "MarginRankingLoss MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "normalization": "CrossMapLRN2d",
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": (
        "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d AvgPool2d AvgPool3d "
        "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d"
    ),
    "rnn": "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell",
    "sparse": "EmbeddingBag",
}
# The files of torch.distributions, with the names that are in other files of backlight.distributions
_DISTRIBUTIONS = {
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "inverse_gamma": "InverseGamma",
    "kumaraswamy": "Kumaraswamy",
    "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "uniform": "Uniform",
    "weibull": "Weibull",
    "wishart": "Wishart",
}
_FUNCTIONAL_STEPS = "adadelta adagrad adam adamw adamax asgd nadam radam rmsprop rprop sgd"
# PyTorch's module: our module that has all of these names, and the names
SPREAD = {f"torch.nn.modules.{name}": ("backlight.nn", names) for name, names in _NN_MODULES.items()} | {
    **{f"torch.distributions.{name}": ("backlight.distributions", names) for name, names in _DISTRIBUTIONS.items()},
    "torch._C": ("backlight.overrides", "DisableTorchFunction DisableTorchFunctionSubclass"),
    "torch.distributed.distributed_c10d": (
        "backlight.distributed",
        "Backend GroupMember ProcessGroup ReduceOp Work all_gather all_gather_into_tensor all_gather_object all_reduce "
        "barrier broadcast broadcast_object_list destroy_process_group gather get_backend get_global_rank "
        "get_group_rank get_process_group_ranks get_rank get_world_size group init_process_group is_gloo_available "
        "is_initialized is_mpi_available is_nccl_available is_torchelastic_launched irecv isend new_group recv reduce "
        "reduce_scatter reduce_scatter_tensor scatter send",
    ),
    "functorch.experimental": ("backlight.func", "functionalize replace_all_batch_norm_modules_"),
    "torch.nn.utils.stateless": ("backlight.func", "functional_call"),
    "torch.storage": ("backlight.tensor.storages", "UntypedStorage TypedStorage"),
    "torch.utils.data.distributed": ("backlight.data", "DistributedSampler"),
    **{f"torch.optim.{name}": ("backlight.optim.functional", name) for name in _FUNCTIONAL_STEPS.split()},
    "torch.functional": (
        "backlight",
        "atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist "
        "chain_matmul einsum istft lu norm meshgrid pca_lowrank split stft svd_lowrank tensordot unique "
        "unique_consecutive unravel_index",
    ),
}

# Private names that code outside of PyTorch imports, mostly for isinstance, and the class here that corresponds
PRIVATE = {
    "torch.cpu.amp": {"autocast": f"{OLDER}.CPUAutocast", "GradScaler": f"{OLDER}.CPUGradScaler"},
    "torch.cuda.amp": {
        "autocast": f"{OLDER}.CUDAAutocast",
        "GradScaler": f"{OLDER}.CUDAGradScaler",
        "custom_bwd": f"{OLDER}.custom_bwd",
        "custom_fwd": f"{OLDER}.custom_fwd",
    },
    "torch._C": {
        "_disabled_torch_function_impl": "backlight.dispatch.torch_function.disabled",
        "_get_tracing_state": f"{STAND_INS}.jit._get_tracing_state",
    },
    "torch.distributions.relaxed_bernoulli": {
        "LogitRelaxedBernoulli": "backlight.distributions.relaxed.LogitRelaxedBernoulli"
    },
    "torch.distributions.relaxed_categorical": {
        "ExpRelaxedCategorical": "backlight.distributions.relaxed.ExpRelaxedCategorical"
    },
    "torch.nn.functional": {"has_torch_function": "backlight.overrides.has_torch_function"},
    "torch.nn.init": {
        "_calculate_correct_fan": "backlight.nn.init.fan_of",
        "_calculate_fan_in_and_fan_out": "backlight.nn.init.fans",
    },
    "torch.nn.modules.dropout": {"_DropoutNd": "backlight.nn.modules.dropout.Dropping"},
    "torch.nn.modules.module": {"_addindent": "backlight.nn.modules.module.indented"},
    "torch.nn.modules.pooling": {
        "_AvgPoolNd": "backlight.nn.modules.pooling._Mean",
        "_MaxPoolNd": "backlight.nn.modules.pooling._Max",
    },
    "torch.nn.modules.batchnorm": {
        "_BatchNorm": "backlight.nn.modules.batchnorm.BatchNorm",
        "_NormBase": "backlight.nn.modules.batchnorm.ChannelNorm",
    },
    "torch.nn.modules.conv": {
        "_ConvNd": "backlight.nn.modules.conv._Convolution",
        "_ConvTransposeNd": "backlight.nn.modules.conv._Transposed",
    },
    "torch.nn.modules.instancenorm": {"_InstanceNorm": "backlight.nn.modules.batchnorm.InstanceNorm"},
    "torch.nn.modules.loss": {
        "_Loss": "backlight.nn.modules.loss.Loss",
        "_WeightedLoss": "backlight.nn.modules.loss.WeightedLoss",
    },
    "torch.optim.lr_scheduler": {
        "EPOCH_DEPRECATION_WARNING": "backlight.optim.schedules.scheduler.EPOCH_DEPRECATION_WARNING",
        "_LRScheduler": "backlight.optim.schedules.scheduler.OlderLRScheduler",
    },
    "torch.utils.tensorboard": {"SummaryWriter": "backlight.adapters.tensorboard.InstalledSummaryWriter"},
    "torch.utils.hooks": {"RemovableHandle": "backlight.engine.hooks.RemovableHandle"},
}


def spread_names(module: str) -> dict[str, str]:
    """Return the names of a module of PyTorch that are in several modules here, each with its path."""
    where, names = SPREAD.get(module, ("", ""))
    return {name: f"{where}.{name}" for name in names.split()} | PRIVATE.get(module, {})


_SAME_NAME = """
amp autograd autograd.forward_ad autograd.function autograd.functional autograd.grad_mode autograd.gradcheck
autograd.graph autograd.profiler autograd.variable distributions distributions.constraint_registry
distributions.constraints distributions.distribution distributions.independent distributions.kl
distributions.mixture_same_family distributions.transformed_distribution distributions.transforms
distributions.von_mises fft func linalg masked nn nn.functional nn.grad nn.init nn.modules
nn.modules.activation nn.modules.container nn.modules.distance nn.modules.dropout nn.modules.flatten nn.modules.lazy
nn.modules.linear nn.modules.loss nn.modules.module nn.modules.normalization nn.modules.padding nn.modules.sparse
nn.modules.transformer nn.modules.upsampling nn.parallel nn.parameter nn.utils nn.utils.fusion nn.utils.parametrizations
nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.spectral_norm nn.utils.weight_norm optim optim.adadelta
optim.adagrad optim.adam optim.adamax optim.asgd optim.lbfgs optim.lr_scheduler optim.nadam optim.optimizer optim.radam
optim.rmsprop optim.rprop optim.sgd optim.sparse_adam overrides profiler return_types serialization signal
signal.windows sparse special testing types utils._pytree utils.benchmark utils.checkpoint utils.dlpack utils.hooks
"""
OURS = {f"torch.{name}": f"backlight.{name}" for name in _SAME_NAME.split()} | {
    "torch": "backlight",
    "functorch": "backlight.func.older",
    "torch._functorch.apis": "backlight.func",
    "torch._functorch.eager_transforms": "backlight.func",
    "torch._functorch.functional_call": "backlight.func.stateless",
    "torch._functorch.make_functional": "backlight.func.older",
    "torch._functorch.vmap": "backlight.transforms.vmap.api",
    "torch._dynamo": "backlight.torch_api.stand_ins.compiler",
    "torch.amp.autocast_mode": "backlight.amp.autocasting",
    "torch.amp.grad_scaler": "backlight.amp.scaling",
    "torch.autograd.anomaly_mode": "backlight.dispatch.anomaly_mode",
    "torch.autograd.profiler_util": "backlight.dispatch.profile_events",
    "torch.compiler": "backlight.torch_api.stand_ins.compiler",
    "torch.distributed": "backlight.distributed",
    "torch.distributed.launch": "backlight.distributed.run",
    "torch.distributed.run": "backlight.distributed.run",
    "torch.distributions.utils": "backlight.distributions.parameters",
    "torch.hub": "backlight.torch_api.stand_ins.hub",
    "torch.jit": "backlight.torch_api.stand_ins.jit",
    "torch.multiprocessing": "backlight.torch_api.stand_ins.processes",
    "torch.nn.common_types": "backlight.types",
    "torch.nn.modules.utils": "backlight.nn.internal.tuples",
    "torch.nn.parallel.distributed": "backlight.nn.distributed_data_parallel",
    "torch.nn.utils.clip_grad": "backlight.nn.utils.clipping",
    "torch.nn.utils.convert_parameters": "backlight.nn.utils.vectors",
    "torch.nn.utils.init": "backlight.nn.utils.fusion",
    "torch.optim._adafactor": "backlight.optim.adafactor",
    "torch.optim._functional": "backlight.optim.functional",
    "torch.optim._muon": "backlight.optim.muon",
    "torch.optim.adamw": "backlight.optim.adam",
    "torch.optim.swa_utils": "backlight.utils.averaging",
    "torch.quasirandom": "backlight.tensor.quasirandom",
    "torch.random": "backlight.tensor.generators",
    "torch.utils._python_dispatch": "backlight.utils._python_dispatch",
    "torch.utils.data._utils.collate": "backlight.data.collate",
    "torch.utils.data._utils.fetch": "backlight.data.fetching",
    "torch.utils.data._utils.worker": "backlight.data.worker_info",
    "torch.utils.data": "backlight.data",
    "torch.utils.data.dataloader": "backlight.data.loader",
    "torch.utils.data.dataset": "backlight.data.dataset",
    "torch.utils.data.sampler": "backlight.data.sampler",
    "torchvision.datasets": "backlight.data.vision",
    "torchvision.datasets.mnist": "backlight.data.vision",
    "torchvision.transforms": "backlight.data.transforms",
}


ADDED = {
    **accelerators.MODULES,
    "torch": {
        "__version__": VERSION,
        "OutOfMemoryError": accelerators.OutOfMemoryError,
        "AcceleratorError": accelerators.AcceleratorError,
        "compiled_with_cxx11_abi": accelerators.compiled_with_cxx11_abi,
        "get_device_module": accelerators.get_device_module,
        "ops": SimpleNamespace(aten=aten),
        "set_flush_denormal": accelerators.set_flush_denormal,
    },
    "torch.__config__": {"show": show, "parallel_info": parallel_info},
    "torch.torch_version": {"TorchVersion": TorchVersion, "__version__": VERSION},
    "torch._functorch": {},
    "torch.utils": {},
    "torch.utils.deterministic": vars(deterministic),
    "torch.utils.data._utils": {},
    "torch.version": {"__version__": VERSION, "cuda": None, "hip": None, "git_version": "unknown", "debug": False},
    "torchvision": {},
}

MISSING = object()
NAMES = OURS.keys() | ADDED.keys() | SPREAD.keys() | PRIVATE.keys()
ROOTS = {"torch", "functorch", "torchvision", "torchaudio"}  # the last is not here, and would import PyTorch


def value_of(module: str, name: str):
    """Return what a name in one of PyTorch's modules is here; None if backlight lacks it."""
    found = _found(module, name)
    return None if found is MISSING else found


def pytorch_name(value: object) -> tuple[str, str] | None:
    """Return PyTorch's module and name for a class or a function of backlight; None for what PyTorch lacks."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    if module.partition(".")[0] not in ("backlight", "torch"):
        return None
    own = [path for path, ours in OURS.items() if ours == module]
    spread = [path for path, (_, names) in SPREAD.items() if name in names.split()]
    for path in [*own, *spread, module, "torch.nn", "torch.nn.functional", "torch.optim", "torch"]:
        if path in NAMES and _found(path, name) is value:
            return path, name
    return None


def not_here(name: str) -> str:
    """Return the message for a name of PyTorch's that backlight lacks."""
    return f"{name} is not in backlight; if you need it, open an issue in the backlight repository that names it"


class StandIn(ModuleType):
    """A module under PyTorch's name (see NOTE [Standing in for PyTorch])."""

    def __getattr__(self, name: str):
        """Look a name up on first use, and cache it."""
        path = f"{self.__name__}.{name}"
        found = _found(self.__name__, name)
        if found is MISSING and path in NAMES:
            return importlib.import_module(path)
        if found is MISSING:
            raise AttributeError(not_here(path), name=name, obj=self)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value) -> None:
        """Set a name; but keep a function that has the name of a submodule, such as `torch.autograd.gradcheck`."""
        hidden = isinstance(value, StandIn) and _found(self.__name__, name) is not MISSING
        super().__setattr__(name, _found(self.__name__, name) if hidden else value)

    def __dir__(self):
        below = [path.rpartition(".")[2] for path in NAMES if path.rpartition(".")[0] == self.__name__]
        return sorted({*self.__dict__, *_public(self.__name__), *below})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, for which backlight stands in>"


def _source(name: str) -> ModuleType | None:
    """Return the module here for one of PyTorch's, if there is one."""
    ours = OURS.get(name)
    return None if ours is None else importlib.import_module(ours)


def _found(module: str, name: str):
    """Return the value of a name in one of PyTorch's modules; MISSING for none, and for a module of backlight."""
    spread = spread_names(module).get(name)
    if spread is not None:
        where, _, own = spread.rpartition(".")
        return getattr(importlib.import_module(where), own)
    found = getattr(_source(module), name, MISSING)
    return MISSING if isinstance(found, ModuleType) or name.startswith("__") else found


def _public(module: str) -> list[str]:
    """Return the names of one of PyTorch's modules, without submodules."""
    source = _source(module)
    return _shown(module, () if source is None else vars(source))


def _shown(module: str, names: Iterable[str]) -> list[str]:
    found = [name for name in names if _found(module, name) is not MISSING]
    return [name for name in (*found, *spread_names(module)) if name[0] != "_"]


class Finder(MetaPathFinder, Loader):
    """The import finder that resolves PyTorch's modules to stand-ins."""

    def find_spec(self, fullname: str, path=None, target=None) -> ModuleSpec | None:
        """Return the spec of a stand-in; None for a module that is not PyTorch's.

        Raises:
            ImportError: it is PyTorch's, and backlight has nothing for it.
        """
        if fullname.partition(".")[0] not in ROOTS:
            return None
        if fullname not in NAMES:
            raise ModuleNotFoundError(not_here(fullname))
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        if spec.name == deterministic.__name__:
            return deterministic  # which is written to
        made = StandIn(spec.name)
        vars(made).update(ADDED.get(spec.name, {}))
        # the names of `from module import *`: the exports of the module here, without its own imports
        own = getattr(_source(spec.name), "__all__", None)
        made.__all__ = _public(spec.name) if own is None else _shown(spec.name, own)
        source = _source(spec.name)
        if source is not None:
            made.__file__ = source.__file__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are looked up on first use."""


@contextmanager
def torch_names() -> Iterator[None]:
    """Make `import torch` import backlight inside the block, and restore the previous modules after it."""
    finder, before = Finder(), _loaded()
    try:
        for name in before:
            del sys.modules[name]
        sys.meta_path.insert(0, finder)
        yield
    finally:
        sys.meta_path[:] = [one for one in sys.meta_path if one is not finder]
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(before)


def _loaded() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ROOTS}
