"""Peak memory of an epoch's first 200 steps (see fashion_mnist_epoch.py), each rival in a process of its own.

python benchmarks/epoch_memory.py
"""

import importlib
import resource
import subprocess
import sys

STEPS = 200
FILES = "data"


def images_and_labels():
    """Return FashionMNIST's training images and labels as arrays, read without either library's tensors."""
    vision = importlib.import_module("backlight.data.vision")
    found = vision.FashionMNIST(FILES, train=True)
    return found.data.numpy(), found.targets.numpy()


def child(name: str, kind: str) -> None:
    """Train for some steps and print the peak memory in MiB, and what it was before the first step."""
    module = importlib.import_module(name)
    images, labels = images_and_labels()
    if kind == "preloaded":
        pixels = module.tensor(images.reshape(-1, 1, 28, 28)).to(module.float32) / 255
        targets = module.tensor(labels)
        batches = ((pixels[i : i + 64], targets[i : i + 64]) for i in range(0, 64 * STEPS, 64))
    elif name == "torch":
        epoch = importlib.import_module("fashion_mnist_epoch")
        batches = module.utils.data.DataLoader(epoch.AsTorchvision(images, labels), batch_size=64)
    else:
        data, transforms = (importlib.import_module(f"backlight.data.{part}") for part in ("vision", "transforms"))
        source = data.FashionMNIST(FILES, train=True, transform=transforms.ToTensor())
        batches = importlib.import_module("backlight.data").DataLoader(source, batch_size=64)
    nn = module.nn
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    loss_of, optimizer = nn.CrossEntropyLoss(), module.optim.SGD(model.parameters(), lr=1e-3)
    for _, (pixels, targets) in zip(range(STEPS), batches):
        loss_of(model(pixels), targets).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    if len(sys.argv) == 3:
        child(*sys.argv[1:])
        return
    print(f"peak resident memory after {STEPS} steps, MiB, libraries and data included")
    for kind in ("quickstart", "preloaded"):
        for name in ("backlight", "torch"):
            command = [sys.executable, __file__, name, kind]
            peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            print(f"{name + ' ' + kind:24} {peak:>6}")


if __name__ == "__main__":
    main()
