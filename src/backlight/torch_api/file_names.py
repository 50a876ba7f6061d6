"""Modules of PyTorch whose names are in several modules here: the names of each, and where they are."""

OLDER = "backlight.amp.older"

# The files of torch.nn.modules, with the names that are in other files of backlight.nn
_NN_MODULES = {
    "activation": "Threshold RReLU Hardsigmoid Hardswish Hardshrink Softshrink MultiheadAttention PReLU Tanhshrink",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d LazyBatchNorm1d BatchNorm2d LazyBatchNorm2d BatchNorm3d LazyBatchNorm3d",
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
# PyTorch's module: our module that has all of these names, and the names
SPREAD = {f"torch.nn.modules.{name}": ("backlight.nn", names) for name, names in _NN_MODULES.items()} | {
    "torch._C": ("backlight.overrides", "DisableTorchFunction DisableTorchFunctionSubclass"),
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
    "torch._C": {"_disabled_torch_function_impl": "backlight.dispatch.torch_function.disabled"},
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
    "torch.optim.lr_scheduler": {"_LRScheduler": "backlight.optim.lr_scheduler.LRScheduler"},
    "torch.utils.hooks": {"RemovableHandle": "backlight.engine.hooks.RemovableHandle"},
}


def spread_names(module: str) -> dict[str, str]:
    """Return the names of a module of PyTorch that are in several modules here, each with its path."""
    where, names = SPREAD.get(module, ("", ""))
    return {name: f"{where}.{name}" for name in names.split()} | PRIVATE.get(module, {})
