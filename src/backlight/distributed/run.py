"""Start a program as several processes that compute together: torchrun's command line.

`backlight torchrun --nproc-per-node 2 script.py`, or `python -m backlight.distributed.run …`. Each process runs
`backlight run script.py`, so that `import torch` gives backlight, and finds the others by its environment. When one
fails, the others are ended and it is named.
"""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TextIO

from backlight.errors import InputError

PORT = 29500
POLL = 0.05  # seconds
ENDING = 5.0  # seconds that a process has to end after SIGTERM
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PR_SET_PDEATHSIG = 1
DESCRIPTION = "Start a PyTorch script, unchanged, as several processes that train one model on backlight."


@dataclass(frozen=True)
class Job:
    """Which processes are started on this machine, and where all meet.

    Args:
        each: how many processes a machine runs.
        machines: how many machines there are.
        machine: which of them this is.
        address: where rank 0 is.
        port: where it listens; None for a free one.
        restarts: how often all are started again after a failure.
        name: of the job.
        ending: seconds that a process has to end after SIGTERM.
    """

    each: int
    machines: int = 1
    machine: int = 0
    address: str = "127.0.0.1"
    port: int | None = None
    restarts: int = 0
    name: str = "none"
    ending: float = ENDING

    def environment(self, local: int, port: int, restart: int) -> dict[str, str]:
        """Return the environment of a process, with torchrun's variables."""
        world, rank = self.each * self.machines, self.machine * self.each + local
        facts = {
            "RANK": rank,
            "LOCAL_RANK": local,
            "WORLD_SIZE": world,
            "LOCAL_WORLD_SIZE": self.each,
            "GROUP_RANK": self.machine,
            "GROUP_WORLD_SIZE": self.machines,
            "ROLE_NAME": "default",
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": self.address,
            "MASTER_PORT": port,
            "TORCHELASTIC_RESTART_COUNT": restart,
            "TORCHELASTIC_MAX_RESTARTS": self.restarts,
            "TORCHELASTIC_RUN_ID": self.name,
        }
        threads = {} if self.each == 1 or "BACKLIGHT_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"}
        return {**threads, **os.environ, **{name: str(value) for name, value in facts.items()}}


class Stopped(Exception):
    """A signal asks the launcher to end."""

    def __init__(self, number: int):
        self.number = number


@dataclass
class Workers:
    """The processes of one start, on this machine."""

    job: Job
    processes: list[subprocess.Popen] = field(default_factory=list)

    def start(self, command: Sequence[str], restart: int) -> None:
        """Start all; each leads a process group of its own, which is ended as a whole."""
        port = _free_port() if self.job.port is None else self.job.port
        for local in range(self.job.each):
            self.processes.append(
                subprocess.Popen(
                    command,
                    env=self.job.environment(local, port, restart),
                    start_new_session=True,
                    preexec_fn=_end_with_launcher if sys.platform == "linux" else None,
                )
            )

    def first_failed(self) -> int | None:
        """Wait until all have ended or one has failed; return which one: one that a signal ended before others."""
        while True:
            codes = [process.poll() for process in self.processes]
            failed = [local for local, code in enumerate(codes) if code]
            if failed:
                return min(failed, key=lambda local: (codes[local] > 0, local))
            if None not in codes:
                return None
            time.sleep(POLL)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End all that run and what they have started: by a signal, and those that stay by SIGKILL."""
        for process in self.processes:
            _signal_group(process, number)
        deadline = time.monotonic() + self.job.ending
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            _signal_group(process, signal.SIGKILL)
            process.wait()

    def said_of(self, local: int) -> str:
        """Return how a process ended."""
        process, rank = self.processes[local], self.job.machine * self.job.each + local
        code = process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        return f"rank {rank} (local_rank {local}, process {process.pid} on {socket.gethostname()}) {how}"


def launch(command: Sequence[str], job: Job) -> int:
    """Start a command as the processes of a job; return 0 when all have ended well, and 1 when one failed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        for restart in range(job.restarts + 1):
            workers = Workers(job)
            try:
                workers.start(command, restart)
                failed = workers.first_failed()
            except Stopped as stopped:
                workers.end(stopped.number)
                return 128 + stopped.number
            if failed is None:
                return 0
            said = workers.said_of(failed)
            workers.end()
            left = job.restarts - restart
            others = "the others were ended" if job.each > 1 else "it was the only one here"
            again = f"; all are started again ({restart + 1} of {job.restarts})" if left else ""
            print(f"backlight torchrun: {said}; {others}{again}", file=sys.stderr, flush=True)
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _signal_group(process: subprocess.Popen, number: int) -> None:
    """Send a signal to a process and to those that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _end_with_launcher() -> None:
    """Let Linux end this process when the launcher is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# --- torchrun's arguments --------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        """Raise what is wrong as an InputError."""
        raise InputError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        """Print help. argparse's own ignores that nothing was written."""
        print(message, end="", file=file or sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Return torchrun's arguments, as far as they make sense here; each name may have - or _ between its words."""
    made = _Parser(prog="backlight torchrun", description=DESCRIPTION, allow_abbrev=False)

    def option(name: str, **more: object) -> None:
        made.add_argument(*dict.fromkeys((name, "--" + name[2:].replace("-", "_"))), **more)

    option(
        "--nproc-per-node",
        metavar="N",
        default="1",
        help="processes on this machine: a number, or cpu or auto for one per core",
    )
    option(
        "--nnodes",
        metavar="N",
        default="1",
        help="number of machines; run the same command on each, with its own --node-rank",
    )
    option("--node-rank", metavar="K", type=int, help="rank of this machine, from 0")
    option("--master-addr", metavar="HOST", default="127.0.0.1", help="address of the machine of node rank 0")
    option(
        "--master-port", metavar="PORT", type=int, help="a free port there; found automatically for a single machine"
    )
    option("--standalone", action="store_true", help="use one machine (the default)")
    option("--rdzv-endpoint", metavar="HOST:PORT", default="", help="the same as --master-addr and --master-port")
    option(
        "--rdzv-backend",
        metavar="NAME",
        choices=("static", "c10d"),
        default="static",
        help="static or c10d; both work the same",
    )
    option("--rdzv-id", metavar="NAME", default="none", help="name of the job, in TORCHELASTIC_RUN_ID")
    option("--max-restarts", metavar="N", type=int, default=0, help="restart all processes up to N times on a failure")
    option(
        "--monitor-interval",
        metavar="SECONDS",
        type=float,
        help="accepted and ignored; processes are polled 20 times a second",
    )
    option(
        "--shutdown-timeout",
        metavar="SECONDS",
        type=float,
        default=ENDING,
        help="time before a process that does not stop is killed",
    )
    option("--no-python", action="store_true", help="start the program directly, not with Python")
    made.add_argument("-m", "--module", action="store_true", help="run a module, as `python -m` does")
    made.add_argument("training_script", metavar="script.py", help="a script, or a module after -m")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER, metavar="…", help="arguments of the script")

    return made


def main(args: Sequence[str] | None = None) -> int:
    """Start what the arguments say.

    Raises:
        InputError: an argument cannot be used.
    """
    given = parser().parse_args(args)
    program = [given.training_script, *given.training_script_args]
    if not given.no_python:
        program = [sys.executable, "-m", "backlight", "run", *(["-m"] if given.module else []), *program]
    if not given.no_python and not given.module and not os.path.isfile(given.training_script):
        raise InputError(f"there is no script {given.training_script}")
    return launch(program, job_of(given))


def job_of(given: argparse.Namespace) -> Job:
    """Return the job that the arguments describe.

    Raises:
        InputError: they do not fit together.
    """
    least, _, most = given.nnodes.partition(":")
    if most and most != least:
        raise InputError(
            f"--nnodes must be one number, got {given.nnodes}: the number of machines does not change here"
        )
    machines = _count("--nnodes", least)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    each = cores if given.nproc_per_node in ("cpu", "auto") else _count("--nproc-per-node", given.nproc_per_node)
    address, port = given.master_addr, given.master_port
    if given.rdzv_endpoint and not given.standalone:
        address, _, text = given.rdzv_endpoint.rpartition(":")
        port = None if text == "0" else _count("the port of --rdzv-endpoint", text)
    if machines == 1:
        machine = 0
    else:
        machine = given.node_rank
        if machine is None or not 0 <= machine < machines:
            raise InputError(f"--node-rank must be 0 to {machines - 1} on the {machines} machines, got {machine}")
        if given.max_restarts:
            raise InputError("--max-restarts must be 0 with several machines: give the command again on all of them")
        port = PORT if port is None else port
    if given.max_restarts < 0:
        raise InputError(f"--max-restarts must not be negative, got {given.max_restarts}")
    ending = given.shutdown_timeout
    return Job(each, machines, machine, address, port, given.max_restarts, given.rdzv_id, ending)


def _count(name: str, text: str) -> int:
    """Return a positive number, or raise an InputError."""
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"{name} must be a positive number, got {text}")
    return int(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as problem:
        print(f"backlight: {problem}", file=sys.stderr)
        sys.exit(2)
