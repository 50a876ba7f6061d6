"""The `device` object: backlight computes on the CPU, and says so plainly when asked for another."""

from backlight.errors import GraphError

KNOWN = ("cpu", "cuda", "mps", "xpu", "meta", "xla", "hip", "mtia", "hpu", "ipu", "vulkan", "opencl")


class device:  # noqa: N801 - PyTorch's name
    """Where a tensor lives: `device("cpu")`, or a name that `require_cpu` will refuse with the reason.

    Raises:
        RuntimeError: the name is no device name that PyTorch knows.
    """

    __slots__ = ("type", "index")

    def __init__(self, type: "str | device" = "cpu", index: int | None = None):  # noqa: A002 - PyTorch's name
        if isinstance(type, device):
            type, index = type.type, type.index
        name, _, number = str(type).partition(":")
        if name not in KNOWN:
            raise GraphError(
                f"Expected one of {', '.join(KNOWN)} device type at start of device string: {name}; "
                'backlight computes on "cpu"'
            )
        if number and not number.isdigit():
            raise GraphError(f"Invalid device string: '{type}'; write it as 'cpu' or 'cpu:0'")
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

    def __reduce__(self):
        return (device, (str(self),))


CPU = device("cpu")


def require_cpu(where) -> device:
    """Return the CPU device, or say that the one asked for is not available here.

    Raises:
        RuntimeError: `where` names an accelerator.
    """
    if where is None:
        return CPU
    wanted = device(where)
    if wanted.type != "cpu":
        wording = {"cuda": "Torch not compiled with CUDA enabled", "mps": "PyTorch is not linked with support for mps devices"}
        reason = wording.get(wanted.type, f"Could not run on the {wanted.type} device")
        raise GraphError(f"{reason}; backlight computes on the CPU only: use device='cpu', got {str(wanted)!r}")
    return wanted
