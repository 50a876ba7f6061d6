"""One epoch of PyTorch's quickstart on FashionMNIST: MLP 784-512-512-10, batch 64, SGD, two threads.

Four ways in turn, in one process, in bursts of steps that are scaled to an epoch: the quickstart's DataLoader with
ToTensor in both libraries, and tensors loaded beforehand. torchvision has no build for the CPU alone, so PyTorch's side
takes its samples from a Dataset that does what torchvision's FashionMNIST and ToTensor do, less PIL's part: this
favours PyTorch. torch.compile joins with --compile, and jax.jit where jax is installed.

    python benchmarks/fashion_mnist_epoch.py [--rounds 7] [--steps 100] [--compile]

The images are those of Debian's package dataset-fashion-mnist; without it, random bytes of their shape, and it says so.
"""

import argparse
import importlib
import importlib.util
import os

THREADS = min(2, os.cpu_count() or 1)
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402 - after the number of threads is set
import torch  # noqa: E402
from measure import interleaved, quartiles, ratio, stopwatch  # noqa: E402

import backlight  # noqa: E402
from backlight.data import DataLoader  # noqa: E402
from backlight.data.transforms import ToTensor  # noqa: E402
from backlight.data.vision import FashionMNIST  # noqa: E402

EPOCH = 938  # steps of 64


class AsTorchvision(torch.utils.data.Dataset):
    """Samples as torchvision's FashionMNIST with ToTensor() gives them."""

    def __init__(self, images, labels):
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].numpy()
        tensor = torch.from_numpy(image).view(28, 28, 1).permute(2, 0, 1).contiguous()
        return tensor.to(torch.float32).div(255), int(self.labels[index])


class Random:
    """Random bytes of FashionMNIST's shape, for machines without the data."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (60_000, 28, 28), dtype=np.uint8)
        self.labels = rng.integers(0, 10, 60_000)
        self.to_tensor = ToTensor()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.to_tensor(self.images[index]), int(self.labels[index])


def network(nn):
    """Return the quickstart's network."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def training(module, batches, steps, compiled=False):
    """Return a function that trains for so many steps and returns its time, scaled to an epoch."""
    model = network(module.nn)
    forward = torch.compile(model) if compiled else model
    loss_of = module.nn.CrossEntropyLoss()
    optimizer = module.optim.SGD(model.parameters(), lr=1e-3)
    source = iter(())

    def once():
        nonlocal source
        start = stopwatch()
        for _ in range(steps):
            try:
                images, labels = next(source)
            except StopIteration:
                source = iter(batches)
                images, labels = next(source)
            loss = loss_of(forward(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return ((stopwatch() - start) * EPOCH / steps,)

    return once


class Preloaded:
    """Batches cut from tensors that were made beforehand."""

    def __init__(self, module, images, labels):
        self.images = module.tensor(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
        self.labels = module.tensor(labels.astype(np.int64))

    def __iter__(self):
        for start in range(0, len(self.labels) - 63, 64):
            yield self.images[start : start + 64], self.labels[start : start + 64]


def jax_training(images, labels, steps):
    """Return the same for JAX: the whole step, forward, backward and update, compiled by jax.jit."""
    jax = importlib.import_module("jax")
    jnp = jax.numpy
    rng = np.random.default_rng(0)
    sizes = [(784, 512), (512, 512), (512, 10)]
    bounds = [rows**-0.5 for rows, _ in sizes]
    parameters = [
        (jnp.asarray(rng.uniform(-b, b, size), jnp.float32), jnp.asarray(rng.uniform(-b, b, size[1]), jnp.float32))
        for b, size in zip(bounds, sizes)
    ]
    pixels = jnp.asarray(images.reshape(-1, 784).astype(np.float32) / 255)
    targets = jnp.asarray(labels.astype(np.int32))

    def loss_of(parameters, x, y):
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        scores = x @ parameters[-1][0] + parameters[-1][1]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()

    @jax.jit
    def step(parameters, x, y):
        slopes = jax.grad(loss_of)(parameters, x, y)
        return jax.tree_util.tree_map(lambda p, g: p - 1e-3 * g, parameters, slopes)

    place = 0

    def once():
        nonlocal parameters, place
        start = stopwatch()
        for _ in range(steps):
            at = place % (EPOCH - 1) * 64
            place += 1
            parameters = step(parameters, pixels[at : at + 64], targets[at : at + 64])
        jax.block_until_ready(parameters)
        return ((stopwatch() - start) * EPOCH / steps,)

    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    try:
        ours = FashionMNIST("data", train=True, transform=ToTensor())
        images, labels = np.asarray(ours.data.numpy()), np.asarray(ours.targets.numpy())
    except RuntimeError as problem:
        print("random bytes instead of images:", str(problem).splitlines()[0])
        ours = Random()
        images, labels = ours.images, ours.labels
    loader = torch.utils.data.DataLoader(AsTorchvision(images, labels), batch_size=64)
    candidates = {
        "backlight quickstart": training(backlight, DataLoader(ours, batch_size=64), options.steps),
        "torch quickstart": training(torch, loader, options.steps),
        "backlight preloaded": training(backlight, Preloaded(backlight, images, labels), options.steps),
        "torch preloaded": training(torch, Preloaded(torch, images, labels), options.steps),
    }
    if options.compile:
        candidates["torch.compile preloaded"] = training(
            torch, Preloaded(torch, images, labels), options.steps, compiled=True
        )
    if importlib.util.find_spec("jax") is not None:
        candidates["jax.jit preloaded"] = jax_training(images, labels, options.steps)
    times = interleaved(candidates, options.rounds, warmup=1)
    print(f"one epoch, {THREADS} threads, s: median of {options.rounds} bursts of {options.steps} steps (quartiles)")
    for name, results in times.items():
        low, middle, high = quartiles([one for (one,) in results])
        print(f"{name:26} {middle:6.2f} ({low:.2f}-{high:.2f})")
    for kind in ("quickstart", "preloaded"):
        pairs = [[one for (one,) in times[f"{name} {kind}"]] for name in ("backlight", "torch")]
        low, middle, high = ratio(*pairs)
        print(f"{kind:12} backlight / torch: {middle:.2f} ({low:.2f}-{high:.2f})")


if __name__ == "__main__":
    main()
