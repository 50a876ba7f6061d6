"""The process at which all ranks of a job meet: it brings up MPI without a launcher of MPI's, and reports lost ranks.

NOTE [Rendezvous]
Rank 0 starts this file as a process of its own, which listens at MASTER_ADDR:MASTER_PORT. (Not a thread: MPI_Init holds
Python's lock, and rank 0 needs replies in the meantime.) Each rank makes two connections and sends a line on each:

    hello pmi|watch RANK WORLD_SIZE HOST PID

When all have come, each gets `go`; a rank that does not come in time is named to the others in an `error` line. Then
MPI_Init of MPICH and its relatives finds the `pmi` connection as PMI_FD and speaks PMI-1 on it, lines of `key=value`
by which ranks exchange addresses. The `watch` connection lives as long as its process: when it ends, by whatever
means, the others get `lost RANK HOST PID`. The server ends when all ranks have.
"""

import os
import selectors
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

MAXES = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096"
DEAD_AFTER = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}  # seconds, seconds, probes


def keep_alive(connection: socket.socket) -> None:
    """Let the system find out within 20 seconds that the machine at the other end is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in DEAD_AFTER.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@dataclass(eq=False)
class Peer:
    """One connection of a rank; `rank` is None until it has said hello."""

    connection: socket.socket
    kind: str = ""
    rank: int | None = None
    place: str = ""
    unread: bytes = b""

    def send(self, line: str) -> None:
        """Send a line; to a process that is gone, nothing."""
        with suppress(OSError):  # its end is noticed where it is read
            self.connection.sendall(line.encode() + b"\n")


@dataclass
class Server:
    """What the ranks of one job have sent so far."""

    listener: socket.socket
    world: int
    timeout: float
    name: str = field(default_factory=lambda: f"backlight_{os.urandom(8).hex()}")  # MPI names shared memory after it
    peers: dict[tuple[str, int], Peer] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    at_barrier: list[Peer] = field(default_factory=list)
    complete: bool = False

    def serve(self) -> None:
        """Answer until all ranks have ended, or not all have come in time."""
        deadline = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            while self.peers or not self.complete:
                left = None if self.complete else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return self.give_up()
                for key, _ in selector.select(left):
                    if key.fileobj is self.listener:
                        connection, _ = self.listener.accept()
                        keep_alive(connection)
                        selector.register(connection, selectors.EVENT_READ, Peer(connection))
                    elif not self.read(key.data):
                        selector.unregister(key.fileobj)
                        self.ended(key.data)

    def read(self, peer: Peer) -> bool:
        """Handle the lines that have arrived from a peer; return False if its connection has ended."""
        try:
            arrived = peer.connection.recv(1 << 16)
        except OSError:
            arrived = b""
        *lines, peer.unread = (peer.unread + arrived).split(b"\n")
        for line in lines:
            words = line.decode("utf-8", "replace").split()
            if peer.rank is None:
                self.welcome(peer, words)
            else:
                self.pmi(peer, dict(word.partition("=")[::2] for word in words))
        return bool(arrived)

    def welcome(self, peer: Peer, words: list[str]) -> None:
        """Take note of a rank that has come; when all have, let them go on."""
        if len(words) != 6 or words[0] != "hello":
            return peer.send("error this is the rendezvous of a backlight process group")
        _, peer.kind, rank, world, *place = words
        if int(world) != self.world:
            return peer.send(f"error rank {rank} has WORLD_SIZE={world}, and rank 0 has WORLD_SIZE={self.world}")
        if (peer.kind, int(rank)) in self.peers:
            other = self.peers[peer.kind, int(rank)].place
            return peer.send(f"error rank {rank} is there already: {other}; each process needs a RANK of its own")
        peer.rank, peer.place = int(rank), "process {1} on {0}".format(*place)
        self.peers[peer.kind, peer.rank] = peer
        self.complete = len(self.peers) == 2 * self.world
        if self.complete:
            self.tell("go")

    def give_up(self) -> None:
        """Name the ranks that have not come to those that have."""
        missing = [str(rank) for rank in range(self.world) if ("watch", rank) not in self.peers]
        ranks = f"rank{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        self.tell(f"error {ranks} of {self.world} did not come within {self.timeout:g} s")

    def ended(self, peer: Peer) -> None:
        """Tell the others of a rank whose process has ended."""
        peer.connection.close()
        if peer.rank is not None:
            del self.peers[peer.kind, peer.rank]
            if peer.kind == "watch":
                self.tell(f"lost {peer.rank} {peer.place}")

    def tell(self, line: str) -> None:
        """Send a line to all ranks; one about a loss only to those that watch."""
        for peer in list(self.peers.values()):
            if peer.kind == "watch" or not line.startswith("lost"):
                peer.send(line)

    def pmi(self, peer: Peer, request: dict[str, str]) -> None:
        """Answer a line of PMI-1."""
        command, key = request.get("cmd"), request.get("key", "")
        if command == "init":
            peer.send("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
        elif command == "get_maxes":
            peer.send(MAXES)
        elif command == "get_appnum":
            peer.send("cmd=appnum appnum=0")
        elif command == "get_universe_size":
            peer.send(f"cmd=universe_size size={self.world}")
        elif command == "get_my_kvsname":
            peer.send(f"cmd=my_kvsname kvsname={self.name}")
        elif command == "put":
            self.values[key] = request["value"]
            peer.send("cmd=put_result rc=0 msg=success")
        elif command == "get" and key in self.values:
            peer.send(f"cmd=get_result rc=0 msg=success value={self.values[key]}")
        elif command == "get":
            peer.send("cmd=get_result rc=-1 msg=key_not_found value=unknown")
        elif command == "barrier_in":
            self.at_barrier.append(peer)
            if len(self.at_barrier) == self.world:
                for one in self.at_barrier:
                    one.send("cmd=barrier_out rc=0 msg=success")
                self.at_barrier.clear()
        elif command == "finalize":
            peer.send("cmd=finalize_ack rc=0 msg=success")


if __name__ == "__main__":
    Server(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])).serve()
