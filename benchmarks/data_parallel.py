"""Training by 2 processes of 1 thread beside 1 process of 2 threads, on backlight (MPI) and on PyTorch (Gloo).

    python benchmarks/data_parallel.py [ROUNDS]

All four train the same network on the same global batches; which goes first changes from round to round, and the best
of all rounds counts. `without overlap` is backlight with all gradients in one bucket, which is sent when the backward
has ended.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
STEPS, WARM_UP = 40, 5
NETWORKS = {"mlp": 256, "cnn": 64}  # with the size of the global batch
BUCKETS = {"backlight 2×1": 25, "backlight 2×1 without overlap": 10_000, "PyTorch 2×1": 25}
RUNS = {  # name: how the program is started, how many processes, threads of each
    "backlight 1×2": (["-m", "backlight", "torchrun", "--nproc-per-node=1"], 1, 2),
    "backlight 2×1": (["-m", "backlight", "torchrun", "--nproc-per-node=2"], 2, 1),
    "backlight 2×1 without overlap": (["-m", "backlight", "torchrun", "--nproc-per-node=2"], 2, 1),
    "PyTorch 1×2": (["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"], 1, 2),
    "PyTorch 2×1": (["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"], 2, 1),
}


def train(network: str, threads: int, bucket: float, file: str) -> None:
    """Train in one of the processes; rank 0 writes the samples a second of the best stretch of five steps."""
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(threads)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    if network == "mlp":
        model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
        inputs = torch.randn(NETWORKS[network], 784)
    else:
        first, second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        pooled = nn.ReLU(), nn.MaxPool2d(2)
        model = nn.Sequential(first, *pooled, second, *pooled, nn.Flatten(), nn.Linear(64 * 64, 10))
        inputs = torch.randn(NETWORKS[network], 3, 32, 32)
    labels = torch.randint(0, 10, (len(inputs),))
    if dist.get_world_size() > 1:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    inputs, labels = inputs[mine].contiguous(), labels[mine].contiguous()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    times = []
    for _ in range(WARM_UP + STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        times.append(time.perf_counter())
    stretches = [times[place + 5] - times[place] for place in range(WARM_UP, len(times) - 5)]
    if dist.get_rank() == 0:
        Path(file).write_text(str(5 * NETWORKS[network] / min(stretches)))
    dist.destroy_process_group()


def measured(name: str, network: str, file: Path) -> float:
    """Return the samples a second of one run."""
    start, _, threads = RUNS[name]
    words = [sys.executable, *start, __file__, "--worker", network, str(threads), str(BUCKETS.get(name, 25)), str(file)]
    threads_of = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    subprocess.run(words, env=os.environ | threads_of, check=True, stderr=subprocess.DEVNULL)
    return float(file.read_text())


def main(rounds: int) -> None:
    """Measure all and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            best = dict.fromkeys(RUNS, 0.0)
            for turn in range(rounds):
                for name in list(RUNS)[:: 1 if turn % 2 else -1]:
                    best[name] = max(best[name], measured(name, network, Path(folder) / "rate"))
            print(f"{network}, global batch {NETWORKS[network]}")
            for name, rate in best.items():
                print(f"  {name:<31}{rate:9,.0f} samples/s {rate / best['backlight 1×2']:6.2f} of backlight 1×2")


if __name__ == "__main__":
    if "--worker" in sys.argv:
        network, threads, bucket, file = sys.argv[sys.argv.index("--worker") + 1 :]
        train(network, int(threads), float(bucket), file)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
