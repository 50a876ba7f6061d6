"""Idx files are read wherever they lie, transforms do what torchvision's do, and batches are built in one step."""

import gzip
import struct

import numpy as np
import pytest

import backlight
from backlight.data import DataLoader, Subset
from backlight.data.transforms import (
    Compose,
    ConvertImageDtype,
    Lambda,
    Normalize,
    PILToTensor,
    ToTensor,
    batched_form,
)
from backlight.data.vision import EMNIST, KMNIST, MNIST, FashionMNIST, read_idx

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 28, 28), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 10, dtype=np.uint8)


def idx_of(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder, part="train", packed=True, images=IMAGES, labels=LABELS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
        content = idx_of(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=7))
        else:
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("place", ["MNIST/raw", "MNIST", "."])
def test_files_are_found_in_three_places_packed_or_not(tmp_path, place, packed):
    write(tmp_path / place, packed=packed)
    found = MNIST(root=str(tmp_path), download=True)
    assert (found.data._data == IMAGES).all()
    assert found.targets.tolist() == LABELS.tolist()
    assert (found.data.dtype, found.targets.dtype) == (backlight.uint8, backlight.int64)


def test_a_sample_is_what_torchvision_gives(tmp_path):
    write(tmp_path, "t10k")
    image, label = FashionMNIST(tmp_path, train=False, transform=ToTensor())[3]
    assert image.shape == (1, 28, 28)
    assert image.dtype == backlight.float32
    assert (image._data[0] == IMAGES[3].astype(np.float32) / np.float32(255)).all()
    assert type(label) is int
    assert label == LABELS[3]


def test_classes_have_names_and_numbers(tmp_path):
    write(tmp_path)
    assert FashionMNIST(tmp_path).class_to_idx["Ankle boot"] == 9
    assert MNIST(tmp_path).classes[4] == "4 - four"
    assert KMNIST(tmp_path).classes[1] == "ki"


def test_emnist_has_splits(tmp_path):
    write(tmp_path, "emnist-letters-test")
    letters = EMNIST(tmp_path, "letters", train=False)
    assert letters.class_to_idx["a"] == 1
    assert len(letters) == len(LABELS)
    with pytest.raises(ValueError, match="Unknown value 'words' for argument split"):
        EMNIST(tmp_path, "words")


def test_a_dataset_prints_as_torchvisions(tmp_path):
    write(tmp_path)
    lines = repr(FashionMNIST(tmp_path, transform=ToTensor())).splitlines()
    assert lines == [
        "Dataset FashionMNIST",
        "    Number of datapoints: 10",
        f"    Root location: {tmp_path}",
        "    Split: Train",
        "    StandardTransform",
        "Transform: ToTensor()",
    ]


# --- batches in one step ----------------------------------------------------------------------------------------------

STANDARD = {
    "ToTensor": ToTensor(),
    "PILToTensor": PILToTensor(),
    "Compose": Compose([ToTensor(), Normalize((0.3,), (0.2,))]),
    "Convert": Compose([PILToTensor(), ConvertImageDtype(backlight.float64), Normalize([0.3], [0.2])]),
    "Compose in Compose": Compose([Compose([ToTensor()]), Normalize(0.5, 0.5)]),
}


@pytest.mark.parametrize("transform", STANDARD)
def test_a_batch_built_in_one_step_is_the_batch_of_samples(tmp_path, transform):
    write(tmp_path)
    standard = STANDARD[transform]
    assert batched_form(standard) is not None
    fast = MNIST(tmp_path, transform=standard)
    slow = MNIST(tmp_path, transform=Lambda(standard))
    assert batched_form(slow.transform) is None
    for mine, other in zip(DataLoader(fast, batch_size=4), DataLoader(slow, batch_size=4), strict=True):
        assert type(mine) is type(other) is list
        assert mine[0].dtype == other[0].dtype
        assert mine[0].shape == other[0].shape
        np.testing.assert_array_equal(mine[0].numpy(), other[0].numpy())
        assert mine[1].tolist() == other[1].tolist()
        assert mine[1].dtype == other[1].dtype


def test_a_standard_transform_is_called_once_a_batch(tmp_path):
    class Counted(ToTensor):
        calls = 0

        def batched(self, images):
            Counted.calls += 1
            return super().batched(images)

    write(tmp_path)
    subset = Subset(MNIST(tmp_path, transform=Counted()), [9, 1, 5, 5, 0])
    batches = list(DataLoader(subset, batch_size=3))
    assert Counted.calls == 2
    assert [label for _, labels in batches for label in labels.tolist()] == LABELS[[9, 1, 5, 5, 0]].tolist()


def test_a_collate_fn_of_the_users_own_gets_samples(tmp_path):
    write(tmp_path)
    loader = DataLoader(MNIST(tmp_path, transform=ToTensor()), batch_size=4, collate_fn=lambda batch: batch)
    first = next(iter(loader))
    assert len(first) == 4
    assert [label for _, label in first] == LABELS[:4].tolist()
    assert first[0][0].shape == (1, 28, 28)
    assert [label for _, label in first[1:3]] == LABELS[1:3].tolist()


def test_a_subclass_with_samples_of_its_own_keeps_them(tmp_path):
    class Doubled(MNIST):
        def __getitem__(self, index):
            image, label = super().__getitem__(index)
            return image * 2, label + 100

    write(tmp_path)
    images, labels = next(iter(DataLoader(Doubled(tmp_path, transform=ToTensor()), batch_size=4)))
    assert labels.tolist() == (LABELS[:4] + 100).tolist()
    assert images.max().item() == pytest.approx(2 * int(IMAGES[:4].max()) / 255)


def test_labels_are_transformed_one_by_one(tmp_path):
    write(tmp_path)
    loader = DataLoader(MNIST(tmp_path, transform=ToTensor(), target_transform=lambda label: -label), batch_size=10)
    assert next(iter(loader))[1].tolist() == (-LABELS.astype(int)).tolist()


# --- transforms -------------------------------------------------------------------------------------------------------


def test_to_tensor_puts_channels_first():
    image = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    made = ToTensor()(image)
    assert made.shape == (3, 4, 5)
    np.testing.assert_array_equal(made.numpy(), image.transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    assert ToTensor()(image.astype(np.int32)).dtype == backlight.int32


def test_normalize_shifts_and_scales_each_channel():
    image = backlight.tensor(RNG.normal(size=(3, 4, 5)))
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    expected = (image.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(Normalize(mean, std)(image).numpy(), expected, rtol=1e-15)
    copy = image.clone()
    assert Normalize(mean, std, inplace=True)(copy) is copy
    np.testing.assert_allclose(copy.numpy(), expected, rtol=1e-15)


def test_converting_keeps_the_range():
    image = backlight.tensor([[[0, 255]]], dtype=backlight.uint8)
    as_float = ConvertImageDtype(backlight.float32)(image)
    assert as_float.tolist() == [[[0.0, 1.0]]]
    assert ConvertImageDtype(backlight.uint8)(as_float).tolist() == [[[0, 255]]]
    assert ConvertImageDtype(backlight.int16)(image).tolist() == [[[0, 255 * 128]]]
    assert ConvertImageDtype(backlight.int8)(image).tolist() == [[[0, 127]]]


def test_transforms_print_as_torchvisions():
    compose = Compose([ToTensor(), Normalize((0.5,), (0.25,))])
    assert repr(compose) == "Compose(\n    ToTensor()\n    Normalize(mean=(0.5,), std=(0.25,))\n)"


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_missing_files_say_what_to_install_and_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.setattr("backlight.data.vision.SYSTEM", tmp_path / "nowhere")
    with pytest.raises(RuntimeError, match="Dataset not found") as caught:
        FashionMNIST(tmp_path, download=True)
    assert "apt-get install dataset-fashion-mnist" in str(caught.value)
    assert "train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz" in str(caught.value)
    assert str(tmp_path / "FashionMNIST" / "raw") in str(caught.value)
    with pytest.raises(RuntimeError, match=r"You can use download=True to download it\n  backlight fetches nothing"):
        MNIST(tmp_path)


def test_files_of_the_system_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("backlight.data.vision.SYSTEM", tmp_path / "system")
    write(tmp_path / "system" / "fashion-mnist")
    assert len(FashionMNIST(tmp_path / "data", download=True)) == len(IMAGES)


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"<html>404</html>")
    with pytest.raises(ValueError, match="is no idx file of bytes: it begins with 3c 68 74 6d"):
        read_idx(path)
    path.write_bytes(idx_of(IMAGES)[:-1])
    with pytest.raises(ValueError, match=r"must hold 7840 bytes for the shape \(10, 28, 28\) that it states, got 7839"):
        read_idx(path)
    path.write_bytes(gzip.compress(idx_of(IMAGES))[:-20])
    with pytest.raises(ValueError, match=r"cannot read .*fetch the file again"):
        read_idx(path)


def test_images_and_labels_that_do_not_belong_together_are_refused(tmp_path):
    write(tmp_path, labels=LABELS[:-1])
    with pytest.raises(ValueError, match="hold 10 images and 9 labels"):
        MNIST(tmp_path)
    write(tmp_path, images=LABELS)
    with pytest.raises(ValueError, match="must hold an array of 3 dims"):
        MNIST(tmp_path)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ToTensor()("image"), TypeError, "pic should be PIL Image or ndarray. Got <class 'str'>"),
        (lambda: ToTensor()(np.zeros(3)), ValueError, "pic should be 2/3 dimensional. Got 1 dimensions."),
        (lambda: Normalize([0.5], [0.5])(np.zeros(3)), TypeError, "img should be Tensor Image"),
        (lambda: Normalize([0.5], [0.5])(backlight.zeros(1, 2, 2).int()), TypeError, "should be a float tensor"),
        (lambda: Normalize([0.5], [0.5])(backlight.zeros(2, 2)), ValueError, "Expected tensor to be a tensor image"),
        (lambda: Normalize([0.5], [0.0])(backlight.zeros(1, 2, 2)), ValueError, "std evaluated to zero"),
        (lambda: Lambda(3), TypeError, "Argument lambd should be callable, got 'int'"),
    ],
)
def test_mistakes_have_torchvisions_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
