"""`torch.cuda`, `torch.mps`, `torch.backends` and others: what they answer where there is no accelerator.

Queries say that there is none, settings are remembered or ignored, and what needs a device raises PyTorch's error of a
build without it.
"""

import importlib
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import ModuleType, SimpleNamespace

from backlight.devices import device as device_kind

NO_CUDA, NO_XPU = "Torch not compiled with CUDA enabled", "Torch not compiled with XPU enabled"
NO_MPS = "PyTorch is not linked with support for mps devices"


class OutOfMemoryError(RuntimeError):
    """An accelerator has no memory left; never raised here."""


class AcceleratorError(RuntimeError):
    """An accelerator failed; never raised here."""


def no() -> bool:
    """Return False."""
    return False


def yes() -> bool:
    """Return True."""
    return True


def zero(device: object = None) -> int:
    """Return 0."""
    return 0


def nothing(*args, **kwargs) -> None:
    """Do nothing, as PyTorch does without an accelerator."""


def empty_list() -> list:
    """Return an empty list."""
    return []


def empty_dict(device: object = None) -> OrderedDict:
    """Return an empty dict."""
    return OrderedDict()


def refused(message: str, error: type[Exception] = AssertionError) -> Callable:
    """Return a function that raises PyTorch's error of a build without the device."""

    def needs_a_device(*args, **kwargs):
        raise error(f"{message}: backlight computes on the CPU only")

    return needs_a_device


class CPUStream:
    """The order in which operations run: on the CPU there is one, that of the program."""

    def synchronize(self) -> None:
        """Wait for the operations: they are done."""

    wait_stream = record_event = wait_event = nothing

    def query(self) -> bool:
        """Tell whether the operations are done: they are."""
        return True

    def __enter__(self) -> "CPUStream":
        return self

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


def current_stream(device: object = None) -> CPUStream:
    """Return the only stream."""
    return CPUStream()


def stream(stream: CPUStream) -> CPUStream:
    """Return a block in which operations run in a stream: the only one."""
    return stream


class chosen_device:  # noqa: N801 - PyTorch's `torch.cuda.device`
    """A block that chooses a device: without one, only "none" (None or −1) can be chosen."""

    def __init__(self, device: object):
        if device is not None and device != -1:
            raise AssertionError(f"{NO_CUDA}: backlight computes on the CPU only")

    def __enter__(self) -> None:
        """Choose none."""

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


def current_device() -> str:
    """Return the name of the device that is used."""
    return "cpu"


def one() -> int:
    """Return 1."""
    return 1


_TEMPLATE = re.compile(
    r"\s*template\s*(?P<parameters><.+>)\s*(?P<kind>\w+)\s+(?P<name>\w+)\s*(?P<arguments>\(.+\))\s*(?P<body>\{.+\})\s*",
    re.DOTALL,
)


class JittedFunction:
    """What `torch.cuda.jiterator` makes of CUDA code: a function that needs a GPU, which it looks for when called."""

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs):
        if not (return_by_ref or num_outputs == 1):
            raise AssertionError("Return by value only works for single output.")
        parsed = _TEMPLATE.match(code_string)
        if parsed is None:
            raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")
        self.code_string, self.return_by_ref, self.num_outputs = code_string, return_by_ref, num_outputs
        self.kernel_name, self.kwargs_dict, self.is_cuda_available = parsed["name"], kwargs, False

    def __call__(self, *tensors, **kwargs):
        raise AssertionError(
            "Jiterator is only supported on CUDA and ROCm GPUs, none are available.\n  backlight has a CPU only"
        )


def create_jit_fn(code_string: str, **kwargs) -> JittedFunction:
    """Return a function of one output for CUDA code, which raises when it is called."""
    return JittedFunction(code_string, return_by_ref=False, num_outputs=1, **kwargs)


def create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs) -> JittedFunction:
    """Return a function of several outputs for CUDA code, which raises when it is called."""
    return JittedFunction(code_string, return_by_ref=True, num_outputs=num_outputs, **kwargs)


class Switch:
    """A setting of attention's kernels that is remembered and has no effect: there is one kernel."""

    def __init__(self):
        self.on = True

    def enabled(self) -> bool:
        """Return the setting."""
        return self.on

    def enable(self, enabled: bool) -> None:
        """Set it."""
        self.on = enabled


def _switches() -> dict:
    """Return the functions that read and set which kernels attention may use."""
    made = {name: Switch() for name in ("flash", "mem_efficient", "math", "cudnn")}
    reading = {f"{name}_sdp_enabled": switch.enabled for name, switch in made.items()}
    return reading | {f"enable_{name}_sdp": switch.enable for name, switch in made.items()}


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Accept which kernels attention may use, inside a `with` block: there is one."""
    yield


@contextmanager
def cudnn_flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Set what `torch.backends.cudnn` remembers, inside a `with` block."""
    settings = vars(sys.modules["torch.backends.cudnn"])
    before = dict(settings)
    try:
        settings.update(
            enabled=enabled,
            benchmark=benchmark,
            benchmark_limit=benchmark_limit,
            deterministic=deterministic,
            allow_tf32=allow_tf32,
        )
        yield
    finally:
        settings.update(before)


def needs(message: str, names: str, error: type[Exception] = AssertionError) -> dict[str, Callable]:
    """Return functions that raise, by name."""
    return {name: refused(message, error) for name in names.split()}


class SDPBackend(Enum):
    """The kernels of attention among which PyTorch chooses."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | list[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Accept which kernels attention may use, inside a `with` block: there is one.

    Raises:
        AssertionError: they are not given by `SDPBackend`.
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(each, SDPBackend) for each in given):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield


def get_device_module(device: object = None) -> ModuleType:
    """Return PyTorch's module about a kind of device; the CPU's by default."""
    kind = device_kind("cpu" if device is None else device).type
    if kind not in DEVICE_MODULES:
        raise RuntimeError(f"The device of module {kind!r} is not supported")
    return importlib.import_module(DEVICE_MODULES[kind])


ABSENT = {"is_available": no, "is_built": no, "device_count": zero, "manual_seed": nothing, "empty_cache": nothing}
QUERIES = {"is_initialized": no, "is_bf16_supported": no, "manual_seed_all": nothing, "ipc_collect": nothing}
MEMORY = dict.fromkeys(
    ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached"), zero
)
ON_A_DEVICE = """
current_device synchronize get_device_name get_device_properties get_device_capability set_device init Event Stream
current_stream default_stream stream get_rng_state set_rng_state initial_seed reset_peak_memory_stats
reset_max_memory_allocated mem_get_info memory_summary utilization set_per_process_memory_fraction CUDAGraph
"""
CUDA = {
    **ABSENT,
    **QUERIES,
    **MEMORY,
    **needs(NO_CUDA, ON_A_DEVICE),
    "memory_stats": empty_dict,
    "get_arch_list": empty_list,
    "get_gencode_flags": str,
    "get_rng_state_all": empty_list,
    "set_rng_state_all": nothing,
    "seed": nothing,
    "seed_all": nothing,
    "is_current_stream_capturing": no,
    "has_half": True,
    "device": chosen_device,
    "OutOfMemoryError": OutOfMemoryError,
}
ATTENTION = {**_switches(), "sdp_kernel": sdp_kernel}
MATMUL = {
    "allow_tf32": False,
    "allow_fp16_reduced_precision_reduction": True,
    "allow_bf16_reduced_precision_reduction": True,
    "allow_fp16_accumulation": False,
    "fp32_precision": "none",
}
CUDNN = {
    **{"enabled": True, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True},
    "is_available": no,
    "is_acceptable": lambda tensor: False,
    "version": nothing,
    "flags": cudnn_flags,
}


def cpu_capability() -> str:
    """Return which instructions PyTorch would use here; backlight chooses its own: `kernels.native.description()`."""
    return "DEFAULT"


# The names that PyTorch's modules about devices have here
MODULES = {
    "torch.accelerator": {
        **ABSENT,
        "current_accelerator": nothing,
        **needs(
            "Cannot access accelerator device when none is available.", "current_device_index synchronize", RuntimeError
        ),
    },
    "torch.backends": {"disable_global_flags": nothing, "flags_frozen": no},
    "torch.backends.cpu": {"get_cpu_capability": cpu_capability},
    "torch.backends.cuda": {
        "is_built": no,
        "matmul": SimpleNamespace(**MATMUL),
        "preferred_linalg_library": nothing,
        **ATTENTION,
    },
    "torch.backends.cudnn": CUDNN,
    "torch.backends.mkl": {"is_available": no},
    "torch.backends.mkldnn": {"is_available": no, "enabled": True, "deterministic": False},
    "torch.backends.mps": {"is_available": no, "is_built": no, "is_macos13_or_newer": lambda minor=0: False},
    "torch.backends.nnpack": {"is_available": no},
    "torch.backends.openmp": {"is_available": no},
    "torch.backends.opt_einsum": {"is_available": no, "enabled": False, "strategy": None},
    "torch.cpu": {
        "is_available": yes,
        "is_initialized": yes,
        "device_count": one,
        "current_device": current_device,
        "set_device": nothing,
        "synchronize": nothing,
        "current_stream": current_stream,
        "stream": stream,
        "Stream": CPUStream,
        "get_capabilities": empty_dict,
    },
    "torch.cuda": CUDA,
    "torch.cuda.jiterator": {
        "_create_jit_fn": create_jit_fn,
        "_create_multi_output_jit_fn": create_multi_output_jit_fn,
        "_JittedFunction": JittedFunction,
    },
    "torch.cuda.memory": {**MEMORY, "memory_stats": empty_dict, "empty_cache": nothing},
    "torch.cuda.nvtx": needs(
        "NVTX functions not installed. Are you sure you have a CUDA build?", "range_push range_pop", RuntimeError
    ),
    "torch.cuda.random": {"manual_seed": nothing, "manual_seed_all": nothing, "get_rng_state_all": empty_list},
    "torch.mps": {
        **{"is_available": no, "device_count": zero, "manual_seed": nothing, "seed": nothing},
        **needs(
            NO_MPS,
            "synchronize empty_cache current_allocated_memory driver_allocated_memory get_rng_state",
            RuntimeError,
        ),
    },
    "torch.mtia": {"is_available": no, "device_count": zero, "is_initialized": no},
    "torch.nn.attention": {"SDPBackend": SDPBackend, "sdpa_kernel": sdpa_kernel},
    "torch.xpu": {
        **ABSENT,
        **QUERIES,
        **MEMORY,
        **needs(NO_XPU, "current_device synchronize get_device_name get_device_properties set_device"),
    },
}
DEVICE_MODULES = {
    "cpu": "torch.cpu",
    "cuda": "torch.cuda",
    "mps": "torch.mps",
    "xpu": "torch.xpu",
    "mtia": "torch.mtia",
}


def set_flush_denormal(mode: bool) -> bool:
    """Return whether the setting is in force: numbers near 0 are never taken for 0, so only False is."""
    return not mode


def compiled_with_cxx11_abi() -> bool:
    """Return True, as PyTorch's builds for Linux do."""
    return True
