"""Pictures of a deep model in PyTorch with 100, 1,000 and 5,000 nodes: their layout alone, and all the way to a file.

    python benchmarks/lens_pictures.py [--quick] [--json FILE]

NOTE [What is compared]
The model is a row of blocks `x + tanh(linear(x))`; a node is one of autograd's, leaves too. *Layout*: backlight places
every node, with nothing folded into groups, since the others know no groups; `dot` places what torchviz and torchview
have written, which takes it no text to parse that they did not write. *Picture*: from the model and its input to a
file, the forward and for backlight the backward as well: a page that can be opened in place, which holds values,
gradients and the replay; for the others an SVG through `dot`. torchviz draws no values and no gradients, torchview
modules and their calls, torchlens the forward's ops. Who walks by recursion is given room for it. Whatever takes
more than `LIMIT` seconds is stopped and said to have.
"""

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from measure import OURS, Case, Work
from quiet import library
from suite import main

TITLE = "pictures of a deep model"
SIZES = (100, 1000, 5000)
NODES_IN_BLOCK, WIDTH, BATCH = 6, 64, 8  # weight, bias, transpose, addmm, tanh, add
LIMIT, RECURSION = 60, 100_000
TORCHVIZ, TORCHVIEW, TORCHLENS = "torchviz + dot", "torchview + dot", "torchlens"


@cache
def model(nodes: int):
    """Return the model whose graph has about so many nodes, and its input."""
    torch = library("torch")
    torch.manual_seed(0)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return x + torch.tanh(self.linear(x))

    return torch.nn.Sequential(*[Block() for _ in range(nodes // NODES_IN_BLOCK)]), torch.randn(BATCH, WIDTH)


def record(nodes: int):
    """Return the record of the model's forward and backward."""
    library("torch")
    network, x = model(nodes)
    with library("backlight.lens").watch(engine="torch") as watch:
        network(x).sum().backward()
    return watch.record


def our_layout(nodes: int) -> Work:
    """Place every node of a record."""
    graph = record(nodes)
    picture, place = library("backlight.lens.pictures.picture"), library("backlight.lens.pictures.place")
    return lambda: len(place.place(picture.picture_of(graph, by="none")).spots)


def our_first_view(nodes: int) -> Work:
    """Group, lay out everything that can be opened, and place what is seen at first."""
    graph = record(nodes)
    picture, place = library("backlight.lens.pictures.picture"), library("backlight.lens.pictures.place")
    return lambda: len(place.place(picture.picture_of(graph)).spots)


def our_page(nodes: int) -> Work:
    """Record, draw and write the page."""
    page_of = library("backlight.lens.pictures.html").page_of

    def once():
        return _written("page.html", page_of(record(nodes)))

    return once


def our_page_of_record(nodes: int) -> Work:
    """Draw and write the page of a record that is there."""
    page_of, graph = library("backlight.lens.pictures.html").page_of, record(nodes)
    return lambda: _written("page.html", page_of(graph))


def our_svg(nodes: int) -> Work:
    """Record, draw and write an SVG of the first view."""
    return lambda: _written("graph.svg", record(nodes).svg())


def their_layout(source_of: Callable[[int], str], nodes: int) -> Work:
    """Let `dot` place what a library has written, which is not timed."""
    _need_dot()
    kept: list[str] = []

    def once():
        if not kept:
            with patience():
                kept.append(source_of(nodes))
        return len(_dot(kept[0], "plain"))

    return once


def their_picture(source_of: Callable[[int], str], nodes: int) -> Work:
    """Let a library write its graph and `dot` draw it."""
    _need_dot()

    def once():
        with patience():
            return _written("graph.svg", _dot(source_of(nodes), "svg"))

    return once


def by_torchviz(nodes: int) -> str:
    """Return torchviz's text for `dot`."""
    network, x = model(nodes)
    return library("torchviz").make_dot(network(x).sum(), params=dict(network.named_parameters())).source


def by_torchview(nodes: int) -> str:
    """Return torchview's text for `dot`, all modules open."""
    network, x = model(nodes)
    return library("torchview").draw_graph(network, input_data=x, expand_nested=True, depth=10).visual_graph.source


def torchlens_picture(nodes: int) -> Work:
    """Let torchlens trace and draw."""
    torchlens = library("torchlens")
    _need_dot()
    network, x = model(nodes)

    def once():
        with patience(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "graph"
            torchlens.trace(network, x).draw(vis_save_only=True, vis_fileformat="svg", vis_outpath=str(file))
            return file.with_suffix(".svg").stat().st_size

    return once


@contextlib.contextmanager
def patience():
    """Stop what takes more than `LIMIT` seconds, and let recursion go deep."""

    def stop(number, frame):
        raise TimeoutError(f"took more than {LIMIT} s")

    before, depth = signal.signal(signal.SIGALRM, stop), sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        sys.setrecursionlimit(depth)


def _dot(source: str, kind: str) -> str:
    try:
        done = subprocess.run(["dot", f"-T{kind}"], input=source, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"dot took more than {LIMIT} s") from None
    if done.returncode:
        raise RuntimeError(f"dot ended with {done.returncode}: {done.stderr[:200]}")
    return done.stdout


def _need_dot() -> None:
    try:
        subprocess.run(["dot", "-V"], capture_output=True, check=True)
    except OSError:
        raise ImportError("the program dot is not installed: install Graphviz") from None


def _written(name: str, text: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8")
        return file.stat().st_size


def layout(nodes: int) -> Case:
    """Return the row of layouts."""
    return _case(
        f"layout, {nodes:,} nodes",
        nodes,
        {
            OURS: lambda: our_layout(nodes),
            f"{OURS}, in groups": lambda: our_first_view(nodes),
            TORCHVIZ: _wanted("torchviz", lambda: their_layout(by_torchviz, nodes)),
            TORCHVIEW: _wanted("torchview", lambda: their_layout(by_torchview, nodes)),
        },
    )


def picture(nodes: int) -> Case:
    """Return the row of pictures."""
    return _case(
        f"picture, {nodes:,} nodes",
        nodes,
        {
            OURS: lambda: our_page(nodes),
            f"{OURS}, once recorded": lambda: our_page_of_record(nodes),
            f"{OURS}, SVG": lambda: our_svg(nodes),
            TORCHVIZ: _wanted("torchviz", lambda: their_picture(by_torchviz, nodes)),
            TORCHVIEW: _wanted("torchview", lambda: their_picture(by_torchview, nodes)),
            TORCHLENS: lambda: torchlens_picture(nodes),
        },
    )


def _case(name: str, nodes: int, candidates: dict[str, Callable[[], Work]]) -> Case:
    rivals = tuple(set(candidates) & {TORCHVIZ, TORCHVIEW, TORCHLENS})
    return Case(
        name, candidates, optional=rivals, threads=1, tolerance=None, rounds=3 if nodes <= 1000 else 1, seconds=10.0
    )


def _wanted(package: str, make: Callable[[], Work]) -> Callable[[], Work]:
    """Return what makes a work, once its package is there; a case says of one that is missing that it is."""

    def made():
        library(package)
        return make()

    return made


def cases(quick: bool = False) -> list[Case]:
    """Return the rows of each size."""
    return [one(size) for size in ((24,) if quick else SIZES) for one in (layout, picture)]


if __name__ == "__main__":
    sys.exit(main("lens_pictures", TITLE, cases))
