"""Write the tables of docs/coming-from-pytorch.md: `python tools/coming_from_pytorch.py`.

For each public name of PyTorch's namespaces: whether a script under `backlight run` finds it, finds one that refuses
with a reason, or does not find it. PyTorch must be installed; tests/torch_api/test_coming_from_pytorch.py compares the
page with what this writes.
"""

import functools
import importlib
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from backlight.torch_api.module_names import torch_names

PAGE = Path(__file__).parent.parent / "docs" / "coming-from-pytorch.md"
BETWEEN = re.compile(r"(?<=<!-- names -->\n).*(?=<!-- end of names -->)", re.DOTALL)
SPACES = """
torch torch.nn torch.nn.functional torch.nn.utils torch.optim torch.optim.lr_scheduler torch.utils.data torch.autograd
torch.func torch.linalg torch.fft torch.special torch.distributed
"""
# Names that a file of PyTorch imports from another one
IMPORTED = {
    "torch.nn": ("factory_kwargs",),
    "torch.nn.functional": ("DType", "Tensor"),
    "torch.optim.lr_scheduler": ("Optimizer", "Tensor"),
    "torch.fft": ("Tensor",),
    "torch.special": ("Tensor",),
    "torch.linalg": ("Tensor",),
}
# Why a name is not there: a reason, and the names that it is the reason of. The first that fits counts.
REASONS = [
    (
        "sparse, jagged and nested layouts",
        r".*sparse|smm|sspaddmm|spmm|hspmm|hsmm|dsmm|saddmm|.*_indices_copy|indices_copy|values_copy",
    ),
    ("sparse, jagged and nested layouts", r"jagged|nested|SparseAdam"),
    (
        "quantised tensors",
        r".*quant|choose_qparams|q_|q?u?int\d+x?\d*$|qscheme|fbgemm|int_repr|per_(tensor|channel)_|fused_moving|ao$|qat$",
    ),
    ("quantised tensors", r"Quint|QInt|QUInt|intrinsic"),
    ("element types that backlight lacks", r"float[48]_|bits?\d*|complex32|chalf"),
    (
        "kernels of other devices and libraries",
        r".*(cudnn|miopen|mkldnn|vulkan)|batch_norm_|Stream$|Event$|DeviceObjType",
    ),
    (
        "kernels of other devices and libraries",
        r"has_(mkl|lapack|openmp|spectral)|kineto_available|windows$|profiler_allow",
    ),
    ("autocast on other devices", r".*(autocast_(gpu|ipu|xla))"),
    ("the memory of PyTorch's own storages", r".*Storage$|StorageBase|.*SerializationContext"),
    (
        "products of 8-bit floats and fused losses",
        r".*(grouped_mm|scaled_mm)|ScalingType|SwizzleType|LinearCrossEntropyOptions",
    ),
    ("symbolic shapes, of compilers", r"sym_|Sym"),
    (
        "compilers, TorchScript and PyTorch's dispatcher",
        r"cond|while_loop|fork|wait|import_ir|parse_|export|fx|library|ops$|classes",
    ),
    (
        "compilers, TorchScript and PyTorch's dispatcher",
        r"merge_type|unify_type|classproperty|get_file_path|Future|jit",
    ),
    ("libraries apart", r"distributions|futures|monitor|package|cpp|prepare_multi"),
    (
        "inner functions without a derivative",
        r"detach_copy|slice_inverse|hash_tensor|native_norm|nuclear_norm|frobenius_norm",
    ),
    ("the same as `i0` and `i1`, which have a derivative", r"modified_bessel_i[01]"),
    ("has another name here: `from_dlpack`, `Tensor.__dlpack__`", r"to_dlpack"),
    ("tensors on several machines", r"is_distributed"),
    ("stores, which only say where processes meet: `init_method` does", r".*Store$|rendezvous|register_rendezvous.*"),
    (
        "the settings of PyTorch's own backends and reducer",
        r".*Options$|BackendConfig|get_backend_config|BuiltinCommHookType|GradBucket|Reducer|ProcessGroupGloo|DebugLevel|.*debug_level.*",
    ),
    (
        "parts of `torch.distributed` that are apart: meshes, shards, remote calls",
        r".*[dD]evice_?[mM]esh|algorithms|autograd|c10d_logger|config|constants|rpc|remote_device|utils|split_group|"
        r"shrink_group|Logger|logging_handlers|record_comm|breakpoint|get_default_backend_for_device|get_pg_count|GroupName|"
        r"supports_complex|QueueEmptyError|RankType",
    ),
    (
        "several tensors or objects in one call: call the single form for each",
        r".*_coalesced|batch_isend_irecv|P2POp|(send|recv)_object_list|new_subgroups.*",
    ),
    ("old names: `ReduceOp`", r"reduce_op$"),
    (
        "runtime settings without a counterpart",
        r"init_num_threads|legacy_contiguous_format|thread_safe_generator|torch",
    ),
    (
        "functions for PyTorch's own Python code",
        r"assert_int_or_pair|boolean_dispatch|handle_torch_function|has_torch_function",
    ),
    (
        "functions for PyTorch's own Python code",
        r"is_tensor_like|DisableTorchFunction|swap_in_optimizer|BroadcastingList|cast",
    ),
    (
        "data pipes, which PyTorch has given up",
        r".*(DataPipe|datapipe)|DataChunk|argument_validation|runtime_validation",
    ),
    ("data pipes, which PyTorch has given up", r"graph(_settings)?$|.*determinis"),
    ("a choice that is fixed here: a new `.grad` has the strides of its leaf", r"enforce_grad_layout_policy"),
    ("a view's history starts anew after a write to its base", r"is_view_replay_enabled"),
    ("written-out derivatives, which are not needed here", r"grad$"),
    ("parts of PyTorch's profilers", r"Profiler|DeviceType|profiler"),
    ("old names: `clip_grad_norm_`", r"clip_grad_norm$"),
]


@functools.cache
def modules_at_import() -> frozenset[str]:
    """Return the names of PyTorch's modules that a fresh `import torch` loads: later there may be more."""
    spaces = ", ".join(SPACES.split())
    program = f"import sys, {spaces}; print(*[name for name in sys.modules if name.startswith('torch')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def public_names(space: str) -> list[str]:
    """Return the names of a namespace that are PyTorch's own: functions, classes, constants and modules."""
    module = importlib.import_module(space)
    return [
        name
        for name in dir(module)
        if name[0] != "_" and name not in IMPORTED.get(space, ()) and _is_own(getattr(module, name), f"{space}.{name}")
    ]


def _is_own(value: object, path: str) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ == path and path in modules_at_import()
    if callable(value):
        where = getattr(value, "__module__", None) or "torch"
        return where.partition(".")[0] in ("torch", "builtins", "_VariableFunctionsClass")
    return isinstance(value, (torch.dtype, torch.layout, torch.memory_format, torch.qscheme, torch.Generator))


def reason_of(name: str) -> str:
    """Return why a name is not there.

    Raises:
        SystemExit: no reason is known: write one into REASONS.
    """
    if isinstance(getattr(torch._C, name, None), type):
        return "types of PyTorch's core: of TorchScript, the dispatcher and other devices"
    for reason, pattern in REASONS:
        if re.match(pattern, name):
            return reason
    raise SystemExit(f"no reason is known why {name} is not there: add one to REASONS in tools/coming_from_pytorch.py")


def refusal(value: object) -> str | None:
    """Return what a function says of itself if it only refuses."""
    first = (getattr(value, "__doc__", None) or "").strip().partition("\n")[0]
    return first if re.match(r"Refuse|Raise[:,]", first) else None


def sorted_names(space: str) -> tuple[list[str], dict[str, list[str]], dict[str, list[str]]]:
    """Return the names that are there, those that refuse by what they say, and those that are absent by the reason."""
    names = public_names(space)
    there, refused, absent = [], {}, {}
    with torch_names():
        module = importlib.import_module(space)
        for name in names:
            if not hasattr(module, name):
                absent.setdefault(reason_of(name), []).append(name)
            elif (said := refusal(getattr(module, name))) is not None:
                refused.setdefault(said, []).append(name)
            else:
                there.append(name)
    return there, refused, absent


def tables() -> str:
    """Return all namespaces, a table each."""
    lines = []
    for space in SPACES.split():
        there, refused, absent = sorted_names(space)
        total = len(there) + sum(len(names) for group in (refused, absent) for names in group.values())
        lines += [f"## {space}", "", f"{len(there)} of {total} names are there.", ""]
        if refused or absent:
            lines += ["| | names | why |", "|---|---|---|"]
            lines += [f"| refused | {_names(names)} | {_cell(said)} |" for said, names in sorted(refused.items())]
            lines += [f"| not for us | {_names(names)} | {_cell(why)} |" for why, names in sorted(absent.items())]
            lines.append("")
        lines += ["<details><summary>There</summary>", "", _names(there), "", "</details>", ""]
    return "\n".join(lines)


def _names(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tables()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BETWEEN.sub(lambda _: found, text), encoding="utf-8")
