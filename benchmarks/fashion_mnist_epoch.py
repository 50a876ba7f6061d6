"""One epoch of PyTorch's quickstart on FashionMNIST: MLP 784-512-512-10, batch 64, SGD.

    python benchmarks/fashion_mnist_epoch.py [--quick] [--json FILE] [--check]

*Quickstart* takes its batches from a DataLoader with ToTensor in both libraries, *preloaded* cuts them from tensors
that were made beforehand; there torch.compile and, where it is installed, jax.jit join. All run bursts of 100 steps,
scaled to an epoch, and begin with the same weights.

torchvision has no build for the CPU alone, so PyTorch's side takes its samples from a Dataset that does what
torchvision's FashionMNIST and ToTensor do, less PIL's part: this favours PyTorch.

The images are those of Debian's package dataset-fashion-mnist or of data/FashionMNIST/raw; without them, random bytes
of their shape, and it says so.
"""

import gzip
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from floors import gemm_floor
from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main

TITLE = "an epoch of FashionMNIST, MLP 784-512-512-10, batch 64"
EPOCH, BATCH, STEPS = 938, 64, 100
SIZES = (784, 512, 512, 10)
PLACES = (Path("data/FashionMNIST/raw"), Path("/usr/share/datasets/fashion-mnist"))
COMPILED, JAX = "torch.compile", "jax.jit"
BARS = {"quickstart": 0.50, "preloaded": 0.90}


@cache
def images_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Return bytes (60000, 28, 28) and labels (60000,), read without either library: a child must not import both."""
    for place in PLACES:
        if (place / "train-images-idx3-ubyte.gz").is_file():
            images, labels = (_idx(place / f"train-{part}-ubyte.gz") for part in ("images-idx3", "labels-idx1"))
            return images, labels.astype(np.int64)
    print("random bytes instead of images: install dataset-fashion-mnist", file=sys.stderr)
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (60_000, 28, 28), dtype=np.uint8), rng.integers(0, 10, 60_000)


def _idx(file: Path) -> np.ndarray:
    content = gzip.decompress(file.read_bytes())
    shape = np.frombuffer(content, ">u4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape).copy()


def their_loader():
    """Return PyTorch's DataLoader over samples as torchvision's FashionMNIST with ToTensor() gives them."""
    torch = library("torch")
    data = library("torch.utils.data")

    class AsTorchvision(data.Dataset):
        def __init__(self):
            self.images, self.labels = map(torch.from_numpy, images_and_labels())

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            image = self.images[index].numpy()
            tensor = torch.from_numpy(image).view(28, 28, 1).permute(2, 0, 1).contiguous()
            return tensor.to(torch.float32).div(255), int(self.labels[index])

    return data.DataLoader(AsTorchvision(), batch_size=BATCH)


def our_loader():
    """Return backlight's DataLoader over its FashionMNIST with ToTensor(); over random bytes without the files."""
    to_tensor = library("backlight.data.transforms").ToTensor()
    loader = library("backlight.data").DataLoader
    try:
        return loader(library("backlight.data.vision").FashionMNIST("data", transform=to_tensor), batch_size=BATCH)
    except RuntimeError:  # the files are not there
        images, labels = images_and_labels()
        return loader(Samples(images, labels, to_tensor), batch_size=BATCH)


class Samples:
    """A dataset of arrays."""

    def __init__(self, images, labels, transform):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.labels[index])


class Preloaded:
    """Batches cut from tensors that were made beforehand."""

    def __init__(self, module):
        images, labels = images_and_labels()
        self.images = module.tensor(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
        self.labels = module.tensor(labels)

    def __iter__(self):
        for start in range(0, len(self.labels) - BATCH + 1, BATCH):
            yield self.images[start : start + BATCH], self.labels[start : start + BATCH]


def weights() -> list[np.ndarray]:
    """Return each layer's weight (out, in) and bias, the same for all."""
    rng = np.random.default_rng(0)
    return [
        rng.uniform(-(size**-0.5), size**-0.5, shape).astype(np.float32)
        for size, out in zip(SIZES, SIZES[1:])
        for shape in ((out, size), (out,))
    ]


def network(module):
    """Return the quickstart's network with these weights."""
    nn = module.nn
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    with module.no_grad():
        for parameter, array in zip(model.parameters(), weights()):
            parameter.copy_(module.tensor(array))
    return model


def endless(batches) -> Iterator:
    """Go through batches again and again."""
    while True:
        yield from batches


def training(name: str, kind: str, steps: int, *, compiled: bool = False):
    """Return a function that trains for so many steps and returns the last loss."""
    module = library(name)
    model = network(module)
    forward = module.compile(model) if compiled else model
    loss_of = module.nn.CrossEntropyLoss()
    optimizer = module.optim.SGD(model.parameters(), lr=1e-3)
    loaders = {OURS: our_loader, RIVAL: their_loader}
    batches = endless(Preloaded(module) if kind == "preloaded" else loaders[name]())

    def burst():
        for _ in range(steps):
            images, labels = next(batches)
            loss = loss_of(forward(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss

    return burst


def jax_training(steps: int):
    """Return the same for JAX, preloaded: the whole step, forward, backward and update, compiled by jax.jit."""
    jax = library("jax")
    jnp = jax.numpy
    images, labels = images_and_labels()
    pixels, targets = jnp.asarray(images.reshape(-1, 784).astype(np.float32) / 255), jnp.asarray(labels, jnp.int32)
    parameters = [jnp.asarray(array) for array in weights()]

    def loss_of(parameters, x, y):
        for weight, bias in zip(parameters[0:-2:2], parameters[1:-2:2]):
            x = jax.nn.relu(x @ weight.T + bias)
        scores = x @ parameters[-2].T + parameters[-1]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()

    @jax.jit
    def step(parameters, x, y):
        loss, slopes = jax.value_and_grad(loss_of)(parameters, x, y)
        return loss, [p - 1e-3 * g for p, g in zip(parameters, slopes)]

    starts = endless(range(0, len(labels) - BATCH + 1, BATCH))

    def burst():
        nonlocal parameters
        for _ in range(steps):
            at = next(starts)
            loss, parameters = step(parameters, pixels[at : at + BATCH], targets[at : at + BATCH])
        return np.asarray(jax.block_until_ready(loss))

    return burst


def cases(quick: bool = False) -> list[Case]:
    """Return the two rows."""
    steps = 2 if quick else STEPS
    shapes = [(BATCH, size, out) for size, out in zip(SIZES, SIZES[1:])]
    once = sum(2 * m * k * n for m, k, n in shapes)
    floor = gemm_floor(steps * (3 * once - 2 * BATCH * SIZES[0] * SIZES[1]), shapes)
    shared = {"floor": floor, "unit": "s", "scale": EPOCH / steps, "tolerance": 1e-3, "memory": (OURS, RIVAL)}
    both = {
        kind: {rival: lambda rival=rival, kind=kind: training(rival, kind, steps) for rival in (OURS, RIVAL)}
        for kind in BARS
    }
    if not quick:
        both["preloaded"][COMPILED] = lambda: training(RIVAL, "preloaded", steps, compiled=True)
        both["preloaded"][JAX] = lambda: jax_training(steps)
    memory = Bar(1.0, of="memory")
    quickstart = (Bar(BARS["quickstart"]), memory)
    preloaded = (Bar(BARS["preloaded"], against=(COMPILED, JAX)), memory)
    return [
        Case("quickstart", both["quickstart"], bars=quickstart, rounds=9, seconds=30.0, **shared),
        Case("preloaded", both["preloaded"], bars=preloaded, optional=(COMPILED, JAX), seconds=30.0, **shared),
    ]


if __name__ == "__main__":
    sys.exit(main("epoch", TITLE, cases))
