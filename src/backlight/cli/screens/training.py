"""A run in the terminal: a picture that is kept up to date, or, where there is no terminal, a line now and then."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from backlight.adapters.rich_live import shows_pictures
from backlight.errors import InputError, install_hint
from backlight.report.numbers import clock, number, sparkline
from backlight.training.train import Run

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

WINDOW = 32  # records that a sparkline shows
LINES = 20  # about as many lines of a run are printed where there is no terminal
MOST_LAYERS = 16
GLOW = "#c97a06"


@contextmanager
def screen_for(run: Run, out: TextIO) -> Iterator[Callable[[dict], None]]:
    """Give a function to show each record with: live in a terminal with colours, else as plain lines."""
    print(_beginning(run), file=out, flush=True)
    if not shows_pictures(out):
        yield PlainLines(run, out).show
        return
    picture = Picture(run)
    with Live(console=Console(file=out, highlight=False), refresh_per_second=8, get_renderable=picture.draw):
        yield picture.show


def _beginning(run: Run) -> str:
    config, count = run.config, sum(parameter.numel() for parameter in run.model.parameters())
    made_up = " (made up, not a real dataset)" if config.data.name == "synthetic" else ""
    begun = f", from step {run.recorder.steps:,}" if run.recorder.steps else ""
    held_out = "" if run.parts.validation is None else f" and {len(run.parts.validation):,} held out"
    images = f"{len(run.parts.batches.images):,} images of {config.data.name}{held_out}{made_up}"
    schedule = "" if config.schedule.name == "constant" else f" with {config.schedule.name}"
    return (
        f"{config.model.kind} of {count:,} parameters on {images}, "
        f"{config.optimizer.name}{schedule}, {run.steps:,} steps{begun} → {config.out}"
    )


class Progress:
    """What is known of a run so far."""

    def __init__(self, run: Run):
        self.run = run
        self.first = run.recorder.steps  # of this process: a resumed run has some behind it
        self.record: dict = {}
        self.evaluation: dict = {}
        self.evaluated_on = "test" if run.parts.validation is None else "validation"
        self.seconds = 0.0
        self.before: float | None = None  # seconds of the run when this process began

    def note(self, record: dict) -> None:
        """Take in a record."""
        if self.before is None:
            self.before = record["seconds"]
            self.first = record["step"]
        self.seconds = record["seconds"] - self.before
        if "evaluation" in record:
            self.evaluation, self.evaluated_on = record["evaluation"], record["on"]
        else:
            self.record = record

    def place(self, record: dict) -> str:
        """Return what an evaluation is of: an epoch, or in the end the best weights."""
        if record["on"] == "test" and self.run.best.record is not None:
            return f"best weights (epoch {self.run.best.record['epoch'] + 1})"
        return f"epoch {record['epoch'] + 1}/{self.run.config.epochs}"

    @property
    def left(self) -> str:
        """The time left, as the steps of this process took it: `1:05`."""
        step = self.record.get("step", 0)
        if step <= self.first or not self.seconds:
            return "?"
        return clock((self.run.steps - step) * self.seconds / (step - self.first))


class PlainLines(Progress):
    """A line for each evaluation, and for about `LINES` of the steps."""

    def __init__(self, run: Run, out: TextIO):
        super().__init__(run)
        self.out = out
        self.apart = max(1, run.steps // LINES)
        self.next = 0

    def show(self, record: dict) -> None:
        """Print a line, if it is time for one."""
        self.note(record)
        if "evaluation" in record:
            found, on = record["evaluation"], record["on"]
            accuracy = f"{100 * found['accuracy']:.2f} %"
            line = f"{self.place(record)}: {on} loss {number(found['loss'])}, {on} accuracy {accuracy}"
            print(line, file=self.out, flush=True)
        elif record["step"] >= self.next:
            self.next = record["step"] + self.apart
            print(
                f"step {record['step']}/{self.run.steps}  loss {number(record['loss'])}  "
                f"accuracy {100 * record['accuracy']:.1f} %  {record['samples_per_second']:,.0f} images/s  "
                f"gradient {record['gradient']:.3g}  lr {record['lr']:.3g}  {self.left} left",
                file=self.out,
                flush=True,
            )


class Picture(Progress):
    """The run at a glance: numbers, a bar, and for each layer the course of its gradient's norm."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.losses: deque = deque(maxlen=WINDOW)
        self.rates: list = []  # of the full run: a schedule is shown completely
        self.norms: dict[str, deque] = {}

    def show(self, record: dict) -> None:
        """Take in a record; the picture is drawn several times a second."""
        self.note(record)
        if "evaluation" in record:
            return
        self.losses.append(record["loss"])
        self.rates.append(record["lr"])
        for layer, norm in record["gradient_norms"].items():
            self.norms.setdefault(layer, deque(maxlen=WINDOW)).append(norm)

    def draw(self) -> Group:
        """Return the picture as things stand."""
        if not self.record:
            return Group(Text("the first step runs", "dim"))
        return Group(self._numbers(), self._bar(), self._courses())

    def _numbers(self) -> Table:
        table = Table.grid(padding=(0, 3))
        values = {
            "loss": number(self.record["loss"]),
            "accuracy": f"{100 * self.record['accuracy']:.1f} %",
            self.evaluated_on: f"{100 * self.evaluation['accuracy']:.2f} %" if self.evaluation else "–",
            "lr": f"{self.record['lr']:.3g}",
            "images/s": f"{self.record['samples_per_second']:,.0f}",
            "time left": self.left,
        }
        table.add_row(*(Text(name, "dim") for name in values))
        table.add_row(*(Text(value, "bold") for value in values.values()))
        return table

    def _bar(self) -> Table:
        step, steps = self.record["step"], self.run.steps
        bar = Table.grid(padding=(0, 2))
        words = f"epoch {self.record['epoch'] + 1}/{self.run.config.epochs} · step {step:,}/{steps:,}"
        bar.add_row(ProgressBar(steps, step, width=40, complete_style=GLOW, finished_style=GLOW), Text(words, "dim"))
        return bar

    def _courses(self) -> Table:
        """Return the last records of the loss and of the gradient of each layer."""
        table = Table.grid(padding=(0, 2))
        table.add_row(Text("loss"), Text(sparkline(self.losses), GLOW), "")
        if self.run.parts.schedule is not None:
            apart = -(-len(self.rates) // WINDOW)
            table.add_row(Text("lr so far"), Text(sparkline(self.rates[::apart]), GLOW), "")
        table.add_row(Text("gradient norm of", "dim"), "", "")
        for layer, norms in list(self.norms.items())[:MOST_LAYERS]:
            last = "none" if norms[-1] is None else f"{norms[-1]:.2e}"
            name = f"{layer} {type(self.run.model.get_submodule(layer)).__name__}"
            table.add_row(Text(name), Text(sparkline(norms), GLOW), Text(last, "dim"))
        if len(self.norms) > MOST_LAYERS:
            table.add_row(Text(f"and {len(self.norms) - MOST_LAYERS} layers more", "dim"), "", "")
        return table
