"""MNIST, FashionMNIST, KMNIST and EMNIST, read from the idx files that they are published in.

NOTE [Where images are looked for]
In root/<Name>/raw, where torchvision keeps them; in root/<Name> and root itself; and where Debian's package installs
them. A file counts if its content fits (magic number, shape, as many images as labels), its gzip header is not checked.

NOTE [As much as is stated]
A file is read up to the size that its first bytes state, and one byte more that must not be there: a packed file that
unpacks to gigabytes costs no more than what it states. What it states must fit into it: gzip packs 1,032 bytes into one
at the most, so a shape larger than that is refused before memory is taken for it.
"""

import gzip
import math
import os
import string
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from backlight.data.dataset import Dataset, Gathered
from backlight.data.transforms import batched_form
from backlight.engine.tensor_state import wrap
from backlight.errors import GraphError, ValueProblem
from backlight.tensor.tensor import Tensor

__all__ = ["EMNIST", "KMNIST", "MNIST", "FashionMNIST"]

SYSTEM = Path("/usr/share/datasets")


class MNIST(Dataset):
    """Handwritten digits: 60,000 images of 28 × 28 bytes to train with and 10,000 to test with.

    A sample is (image, label); without a transform the image is an array of bytes (height, width).

    Args:
        root: the folder that holds the files (see NOTE [Where images are looked for]).
        train: the images to train with, or those to test with.
        transform: a function applied to each image.
        target_transform: a function applied to each label.
        download: accepted; nothing is fetched, and the error says where to get the files.

    Raises:
        RuntimeError: the files are not there.
        ValueError: a file is damaged, or images and labels do not belong together.
    """

    classes = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]
    package: str | None = None  # of Debian, where there is one
    system_folder: str | None = None

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ):
        self.root = root
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        self.data, self.targets = self._read(download)

    def _names(self) -> tuple[str, str]:
        """Return the names of this part's files, as they are when unpacked: images, labels."""
        part = "train" if self.train else "t10k"
        return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"

    def _folders(self) -> list[Path]:
        root, name = Path(self.root).expanduser(), type(self).__name__
        folders = [root / name / "raw", root / name, root]
        return [*folders, SYSTEM / self.system_folder] if self.system_folder else folders

    def _read(self, download: bool) -> tuple[Tensor, Tensor]:
        for folder in self._folders():
            images, labels = (_found(folder, name) for name in self._names())
            if images and labels:
                return _pair(images, labels)
        raise GraphError(self._missing(download))

    def _missing(self, download: bool) -> str:
        names, folders = " and ".join(f"{name}.gz" for name in self._names()), self._folders()
        advice = f"put {names}, packed or not, into {folders[0]}"
        if self.package:
            advice = f"run `apt-get install {self.package}`, or {advice}"
        start = "Dataset not found" if download else "Dataset not found. You can use download=True to download it"
        return f"{start}\n  backlight fetches nothing itself: {advice}. It looked in {', '.join(map(str, folders))}"

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple:
        image, target = self.data._data[index], int(self.targets._data[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __getitems__(self, indices: list[int]):
        """Return several samples: in one step, as a ready batch, where the transform has a batched form."""
        transform = batched_form(self.transform)
        if transform is None or self.target_transform is not None or type(self).__getitem__ is not MNIST.__getitem__:
            return [self[index] for index in indices]
        return Gathered(self, indices, lambda: self._batch(indices, transform))

    def _batch(self, indices: list[int], transform: Callable) -> list[Tensor]:
        chosen = np.asarray(indices)
        return [transform(self.data._data[chosen]), wrap(self.targets._data[chosen])]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"    Number of datapoints: {len(self)}"]
        lines += [f"    Root location: {self.root}", f"    Split: {'Train' if self.train else 'Test'}"]
        if self.transform is not None:
            lines += ["    StandardTransform", f"Transform: {self.transform}"]
        return "\n".join(lines)


class FashionMNIST(MNIST):
    """Pictures of clothes, in the format of MNIST.

    Source: Han Xiao, Kashif Rasul, Roland Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
        Learning Algorithms, 2017, arXiv:1708.07747
    """

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
    package = "dataset-fashion-mnist"
    system_folder = "fashion-mnist"


class KMNIST(MNIST):
    """Cursive Japanese characters, in the format of MNIST.

    Source: Tarin Clanuwat et al.: Deep Learning for Classical Japanese Literature, 2018, arXiv:1812.01718
    """

    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


LETTERS_AS_ONE = set("cijklmopsuvwxyz")  # whose capitals look the same
ALL_SIGNS = set(string.digits + string.ascii_letters)
SPLITS = {
    "byclass": sorted(ALL_SIGNS),
    "bymerge": sorted(ALL_SIGNS - LETTERS_AS_ONE),
    "balanced": sorted(ALL_SIGNS - LETTERS_AS_ONE),
    "letters": ["N/A", *string.ascii_lowercase],
    "digits": list(string.digits),
    "mnist": list(string.digits),
}


class EMNIST(MNIST):
    """Handwritten letters and digits, in the format of MNIST; the images lie on their side, as they are published.

    Args:
        root: the folder that holds the files (see NOTE [Where images are looked for]).
        split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
        train: the images to train with, or those to test with.
        transform: a function applied to each image.
        target_transform: a function applied to each label.
        download: accepted; nothing is fetched, and the error says where to get the files.

    Raises:
        ValueError: there is no such split, or a file is damaged.
        RuntimeError: the files are not there.

    Source: Gregory Cohen et al.: EMNIST: an extension of MNIST to handwritten letters, 2017, arXiv:1702.05373
    """

    def __init__(
        self,
        root: str | Path,
        split: str,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ):
        if split not in SPLITS:
            raise ValueProblem(
                f"Unknown value '{split}' for argument split. Valid values are {{{', '.join(map(repr, SPLITS))}}}."
            )
        self.split = split
        self.classes = SPLITS[split]
        super().__init__(root, train, transform, target_transform, download)

    def _names(self) -> tuple[str, str]:
        stem = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"


def _found(folder: Path, name: str) -> Path | None:
    """Return a file by its name, packed or not."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _pair(images: Path, labels: Path) -> tuple[Tensor, Tensor]:
    """Return images (count, height, width) and labels (count,)."""
    pixels, targets = read_idx(images), read_idx(labels)
    for path, array, dims in ((images, pixels, 3), (labels, targets, 1)):
        if array.ndim != dims:
            raise ValueProblem(f"{path} must hold an array of {dims} dims, got one of shape {array.shape}")
    if len(pixels) != len(targets):
        raise ValueProblem(
            f"{images} and {labels} must belong together, and hold {len(pixels)} images and {len(targets)} labels: "
            "fetch both again"
        )
    return wrap(pixels), wrap(targets.astype(np.int64))


# --- idx files: arrays of bytes, plain or packed with gzip ------------------------------------------------------------

GZIP = b"\x1f\x8b"
UNSIGNED_BYTES = 8  # the third byte of the magic number; the fourth is the number of dims
DAMAGE = (OSError, EOFError, zlib.error)
MOST_PACKED = 1032  # bytes that deflate packs into one, at most


def read_idx(path: Path) -> np.ndarray:
    """Return the array of bytes that an idx file holds (see NOTE [As much as is stated]).

    Raises:
        ValueError: the file holds something else, or not as much as its first bytes say.
    """
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            room = os.fstat(file.fileno()).st_size * (MOST_PACKED if packed else 1)
            if not packed:
                return _array_in(file, room, path)
            with gzip.open(file, "rb") as content:
                return _array_in(content, room, path)
    except DAMAGE as problem:
        raise ValueProblem(f"cannot read {path}: {problem}; fetch the file again") from problem


def _array_in(content: BinaryIO, room: int, path: Path) -> np.ndarray:
    """Read header and data.

    Args:
        room: how many bytes the file can hold at the most.
    """
    head = content.read(4)
    shape = _shape(head + content.read(4 * head[3] if len(head) == 4 and head[3] <= 4 else 0))
    if shape is None:
        raise ValueProblem(f"{path} is no idx file of bytes: it begins with {head.hex(' ')}, not 00 00 08")
    size = math.prod(shape)
    stated = f"{path} must hold {size} bytes for the shape {shape} that it states"
    if size > room:
        raise ValueProblem(f"{stated}, and is too short for that: fetch the file again")
    array = np.empty(size, np.uint8)
    memory = memoryview(array)
    found = 0
    while found < len(memory):
        count = content.readinto(memory[found:])
        if not count:
            break
        found += count
    if found < size:
        raise ValueProblem(f"{stated}, got {found}: fetch the file again")
    if content.read(1):
        raise ValueProblem(f"{stated}, and holds more: fetch the file again")
    return array.reshape(shape)


def _shape(head: bytes) -> tuple[int, ...] | None:
    """Return the shape in a header of big-endian numbers: 0, 0, type, dims, then one number a dim."""
    if len(head) < 8 or head[:2] != b"\0\0" or head[2] != UNSIGNED_BYTES or not 1 <= head[3] <= 4:
        return None
    if len(head) < 4 + 4 * head[3]:
        return None
    return tuple(int(size) for size in np.frombuffer(head, ">u4", count=head[3], offset=4))
