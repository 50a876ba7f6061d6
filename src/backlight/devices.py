"""The `device` object: backlight computes on the CPU; any other device is refused."""

from collections.abc import Callable

from backlight.errors import DeviceAbsent, GraphError

_KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
)


class device:  # noqa: N801 - PyTorch's name
    """Where a tensor lives: `device("cpu")`, or a name that `require_cpu` will refuse with the reason.

    Raises:
        RuntimeError: the name is no device name that PyTorch knows.
    """

    __slots__ = ("index", "type")

    def __init__(self, type: "str | device", index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, int) and type < 0:
            raise GraphError("Device index must not be negative")
        if isinstance(type, int):
            raise GraphError("Cannot access accelerator device when none is available; write device('cpu')")
        name, colon, number = str(type).partition(":")
        if name not in _KNOWN.split(", "):
            raise GraphError(
                f'Expected one of {_KNOWN} device type at start of device string: {name}; backlight computes on "cpu"'
            )
        if colon and index is not None:
            raise GraphError(f"type (string) must not include an index because index was passed explicitly: {type}")
        if colon and not number.isdigit():
            raise GraphError(f"Invalid device string: '{type}'; write it as 'cpu' or 'cpu:0'")
        if index is not None and index < 0:
            raise GraphError(f"Device index must not be negative, got {index}")
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        where = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{where})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> "device":
        """Make new tensors here inside a `with` block: on the CPU, or on "meta", without memory."""
        if self.type != "meta":
            require_cpu(self)
        CHOSEN.blocks = (*CHOSEN.blocks, self)
        return self

    def __exit__(self, *exc) -> None:
        CHOSEN.blocks = CHOSEN.blocks[:-1]

    def __reduce__(self):
        return (device, (str(self),))


CPU = device("cpu")


class Chosen:
    """The device of new tensors: of the innermost `with` block, else that of `set_default_device`."""

    blocks: tuple[device, ...] = ()


CHOSEN = Chosen()


class _Meta:
    """What makes tensors without memory: `meta_tensor` of nn/meta_tensors.py, which is above."""

    make: Callable | None = None


meta = _Meta()


def is_meta(where: "device | str | int | None") -> bool:
    """Tell whether a tensor that is to be made here gets no memory."""
    if where is None:
        return bool(CHOSEN.blocks) and CHOSEN.blocks[-1].type == "meta"
    return device(where).type == "meta"


_REFUSALS = {
    "cuda": "Torch not compiled with CUDA enabled",
    "mps": "PyTorch is not linked with support for mps devices",
}


def require_cpu(where) -> device:
    """Return the CPU device, or raise if the requested one is not available.

    Raises:
        RuntimeError: `where` names an accelerator.
    """
    if where is None:
        return CPU
    wanted = device(where)
    if wanted.type != "cpu":
        reason = _REFUSALS.get(wanted.type, f"Could not run on the {wanted.type} device")
        error = DeviceAbsent if wanted.type == "cuda" else GraphError
        raise error(f"{reason}; backlight computes on the CPU only: use device='cpu', got {str(wanted)!r}")
    return wanted
