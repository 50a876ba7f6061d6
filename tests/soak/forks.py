"""Forks while other threads compute: a child that does not end, or a fork that does not return, is a finding.

    python tests/soak/forks.py --seconds 60 --seed 1
    python tests/soak/forks.py --forks 200               # of each variant, however long that takes

A variant runs in a process of its own: threads compute there without pause while its main thread forks, and each child
does what those threads do. The process prints a line for each fork; whoever is silent for too long is asked for its
stacks through faulthandler, and killed.
"""

import argparse
import faulthandler
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import backlight as torch

HANG = 20.0  # seconds
OUTSIDE = 90.0  # seconds without a line after which the forking process itself is taken to hang
LARGE = 1 << 19  # so many elements are shared out to the kernels' threads
ONE_ARGUMENT = """
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu
round rsqrt selu sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc amax amin argmax argmin
mean median prod std sum var flatten t triu tril diag nanmean nansum count_nonzero fliplr flipud rot90
trace unique argsort sort msort numel nonzero softmax log_softmax
"""
TWO_ARGUMENTS = """
add sub mul div atan2 copysign eq ne lt le gt ge float_power floor_divide fmax fmin fmod heaviside hypot logaddexp
logaddexp2 maximum minimum nextafter pow remainder xlogy matmul mm dist kron
"""
LAZY = """
fft.fft fft.rfft fft.fftfreq linalg.norm linalg.det linalg.inv linalg.qr linalg.svdvals special.bessel_j0 special.i0
special.entr nn.Linear nn.functional.gelu optim.SGD optim.lr_scheduler.StepLR func.vmap func.grad func.jvp masked.sum
utils.checkpoint.checkpoint data.DataLoader autograd.functional.jacobian signal.windows.hann amp.GradScaler igamma lstm
masked.softmax autograd.forward_ad.make_dual profiler.profile vmap bernoulli nn.utils.prune.identity
"""


class Draws:
    """Random numbers of the default generator and of one that is shared; ops."""

    threads = 2

    def __init__(self):
        self.generator = torch.Generator()

    def steps(self, number: int) -> Iterator[None]:
        """Compute beside the forks, a bit at a time."""
        while True:
            torch.rand(8)
            torch.randn(5, generator=self.generator)
            torch.rand(LARGE)
            torch.nn.functional.dropout(torch.ones(64)) + torch.randint(9, (64,))
            torch.manual_seed(number)
            torch.randperm(100, generator=self.generator)
            yield

    def in_child(self) -> None:
        """Compute what the threads computed."""
        assert 0 <= torch.rand(LARGE).sum().item() <= LARGE
        torch.randn(7, generator=self.generator)
        torch.randperm(9)
        assert torch.Generator().manual_seed(3).initial_seed() == 3
        state = torch.get_rng_state()
        first = torch.rand(100)
        torch.set_rng_state(state)
        assert torch.equal(first, torch.rand(100))


class Training:
    """Backwards into shared leaves, hooks on several tensors, checkpoints, grad modes, and an optimizer's steps."""

    threads = 2

    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        self.shared = torch.ones(LARGE, requires_grad=True)
        torch.autograd.graph.register_multi_grad_hook(list(self.model.parameters()), lambda grads: None)
        list(self.train(1))

    def train(self, steps: int = sys.maxsize) -> Iterator[None]:
        """Train a layer of one's own on top of the shared ones."""
        own = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(own.parameters(), lr=1e-3)
        for _ in range(steps):
            x = torch.randn(4, 8)
            own(self.model(x)).square().mean().backward()
            torch.utils.checkpoint.checkpoint(self.model, x, use_reentrant=False).sum().backward()
            (self.shared * 2.0).sum().backward()
            (slope,) = torch.autograd.grad(self.model(x).sum(), [self.model[0].weight], create_graph=True)
            slope.square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            torch.func.grad(lambda a: (a * a).sum())(torch.ones(3))
            with torch.no_grad():
                self.model(x)
            yield

    def steps(self, number: int) -> Iterator[None]:
        """Compute beside the forks, a bit at a time."""
        return self.train()

    def in_child(self) -> None:
        """Train on."""
        recorded = torch.is_grad_enabled()
        with torch.enable_grad():
            list(self.train(2))
            leaf = torch.ones(3, requires_grad=True)
            (leaf * leaf).sum().backward()
            assert leaf.grad.tolist() == [2.0, 2.0, 2.0]
        assert torch.is_grad_enabled() == recorded


class FirstUses:
    """Ops that are called, and modules that are imported, for the first time."""

    threads = 1

    def __init__(self):
        x = torch.rand(4, 4) + 0.25
        calls = [(name, lambda name=name: getattr(torch, name)(x)) for name in ONE_ARGUMENT.split()]
        calls += [(name, lambda name=name: getattr(torch, name)(x, x)) for name in TWO_ARGUMENTS.split()]
        calls = [each for each in calls if hasattr(torch, each[0]) and each[0] not in ("softmax", "log_softmax")]
        calls += [(name, lambda name=name: found(name)) for name in LAZY.split()]
        random.shuffle(calls)
        self.calls = calls
        self.place = 0
        self.may_call = threading.Semaphore(0)  # a call for each fork, so that they meet

    def steps(self, number: int) -> Iterator[None]:
        """Make the calls one after another; it ends with the last one."""
        for place, (_, call) in enumerate(self.calls):
            while not self.may_call.acquire(timeout=0.1):
                yield
            self.place = place
            call()
            yield

    def in_child(self) -> None:
        """Make the call that another thread was just making, and the next ones."""
        for _, call in self.calls[self.place : self.place + 3]:
            call()


class Loader:
    """DataLoader's workers beside a thread that runs large kernels on all threads."""

    threads = 1

    def __init__(self):
        torch.set_num_threads(max(2, torch.get_num_threads()))
        self.numbers = torch.rand(64, 8)
        self.weight = torch.rand(512, 512)
        self.steps_of_pool()

    def steps_of_pool(self) -> None:
        """Run kernels that are shared out to the pool."""
        torch.rand(LARGE).exp().sum()
        torch.softmax(torch.rand(256, 512), -1)
        self.weight @ self.weight

    def steps(self, number: int) -> Iterator[None]:
        """Compute beside the forks, a bit at a time."""
        while True:
            self.steps_of_pool()
            yield

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int):
        """Return a sample, computed in a worker."""
        return (self.numbers[index] * torch.ones(8)).exp() + torch.rand(8)

    def in_child(self) -> None:
        """Run the pool's kernels in a child: it has none of its parent's threads."""
        torch.set_num_threads(2)
        self.steps_of_pool()

    def load(self) -> None:
        """Load all samples in two forked workers."""
        loader = torch.data.DataLoader(
            self, batch_size=16, shuffle=True, num_workers=2, timeout=HANG, multiprocessing_context="fork"
        )
        assert sum(len(batch) for batch in loader) == len(self)


VARIANTS = {"draws": Draws, "training": Training, "first_uses": FirstUses, "loader": Loader}


def found(name: str):
    """Return what a dotted name of the package means."""
    value = torch
    for part in name.split("."):
        value = getattr(value, part)
    return value


# --- the forking process -------------------------------------------------------------------------------------------


@contextmanager
def computing(variant) -> Iterator[threading.Event]:
    """Let the variant's threads compute during the block; the event is set when one has nothing more to do."""
    ended, failed = threading.Event(), []

    def compute(number: int) -> None:
        try:
            for _ in variant.steps(number):
                if ended.is_set():
                    break
        except BaseException:
            failed.append(traceback.format_exc())
        ended.set()

    threads = [threading.Thread(target=compute, args=(number,), daemon=True) for number in range(variant.threads)]
    for thread in threads:
        thread.start()
    try:
        yield ended
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for text in failed:
            print(f"FAILED a thread beside the forks: {text!r}", flush=True)


def forked(work: Callable[[], None]) -> str:
    """Do something in a forked child; return what went wrong, or nothing."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(reading)
            work()
            status = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(status)
    os.close(writing)
    hangs = not select.select([reading], [], [], HANG)[0]
    if hangs:
        os.kill(pid, signal.SIGUSR1)  # faulthandler writes its stacks to stderr
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
    said = b"" if hangs else os.read(reading, 4000)
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    if hangs:
        return "a child hangs"
    return "" if status == 0 else f"a child ended with status {status}: {said.decode()}"


def fork_plainly(work) -> str:
    """Fork outside of everything."""
    return forked(work)


def fork_in_no_grad(work) -> str:
    """Fork inside `no_grad`."""
    with torch.no_grad():
        return forked(work)


def fork_in_a_hook(work) -> str:
    """Fork inside a hook, in the middle of a backward."""
    said = []
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: said.append(forked(work)))
    (leaf * 2.0).sum().backward()
    return said[0]


def play(name: str, forks: int, seed: int) -> None:
    """Fork while the threads of a variant compute, and print a line for each fork."""
    random.seed(seed)
    faulthandler.register(signal.SIGUSR1)
    variant = VARIANTS[name]()
    sys.setswitchinterval(2e-5)
    ways = [fork_plainly] if name == "first_uses" else [fork_plainly, fork_in_no_grad, fork_in_a_hook]
    with computing(variant) as ended:
        done = 0
        while done < forks and not ended.is_set():
            if name == "first_uses":
                variant.may_call.release()
                time.sleep(random.random() * 0.003)
            if name == "loader" and done % 3 == 0:
                variant.load()
                done += 2
            else:
                problem = random.choice(ways)(variant.in_child)
                done += 1
                if problem:
                    print(f"FAILED {problem!r}", flush=True)
            print(f"forked {done}", flush=True)
            time.sleep(random.random() * 0.004)


# --- the process that watches it -----------------------------------------------------------------------------------


def forks_of(name: str, forks: int, seed: int, seconds: float = float("inf")) -> tuple[int, list[str]]:
    """Play a variant until it has forked so often; return how often it did, and a line for each failure."""
    deadline = time.monotonic() + seconds
    done, failures = 0, []
    while done < forks and time.monotonic() < deadline:
        more, found_here = _one_process(name, forks - done, seed + done, deadline)
        done += more
        failures += (lines := [f"{name}: {line}" for line in found_here])
        print("".join(f"{line}\n" for line in lines), end="", flush=True)  # at once: whoever waits may give up
        if failures and not more:
            break
    return done, failures


def _one_process(name: str, forks: int, seed: int, deadline: float) -> tuple[int, list[str]]:
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", __file__, "--play", name]
    paths = [str(Path(torch.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, "--forks", str(forks), "--seed", str(seed)],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        failures, done, buffered = [], 0, b""
        while True:
            if not select.select([process.stdout], [], [], OUTSIDE)[0]:
                failures.append(f"the forking process hangs after {done} forks")
                process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                process.kill()
                break
            read = os.read(process.stdout.fileno(), 1 << 16)
            buffered += read
            *lines, buffered = buffered.split(b"\n")
            for line in lines:
                if line.startswith(b"FAILED"):
                    failures.append(line.decode().removeprefix("FAILED ").strip("'\"").replace("\\n", "\n"))
                else:
                    done = int(line.split()[1])
            if not read:
                break
            if time.monotonic() > deadline:
                process.kill()
                break
        process.stdout.close()
        status = process.wait()
        errors.seek(0)
        said = errors.read()
    if status not in (0, -signal.SIGKILL):
        failures.append(f"the forking process ended with status {status}")
    if failures:
        failures.append(f"it wrote:\n{said[-6000:]}")
    return done, failures


def run(seconds: float, seed: int) -> list[str]:
    """Play all variants for about that long; return a line for each failure."""
    failures = []
    for name in VARIANTS:
        done, found_here = forks_of(name, sys.maxsize, seed, seconds / len(VARIANTS))
        print(f"{name}: {done} forks, {len(found_here)} failures", flush=True)
        failures += found_here
    return failures


def main() -> int:
    """Play what the command line says; return 1 if there were failures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forks", type=int, help="of each variant, instead of --seconds")
    parser.add_argument("--variant", choices=VARIANTS, help="only this one")
    parser.add_argument("--play", choices=VARIANTS, help=argparse.SUPPRESS)  # the forking process itself
    options = parser.parse_args()
    if options.play:
        play(options.play, options.forks, options.seed)
        return 0
    failures = []
    for name in [options.variant] if options.variant else VARIANTS:
        limit = float("inf") if options.forks else options.seconds / (1 if options.variant else len(VARIANTS))
        done, found_here = forks_of(name, options.forks or sys.maxsize, options.seed, limit)
        print(f"{name}: {done} forks, {len(found_here)} failures", flush=True)
        failures += found_here
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
