"""The doctor says the same of a program whose names live in functions, which are gone when it reports."""

import contextlib
import re
import textwrap
import threading
import warnings
from collections.abc import Callable

import pytest
from optimizer_mistakes import MISTAKES as OF_OPTIMISERS
from optimizer_mistakes import NOTES as NOTES_OF_OPTIMISERS
from program_shapes import SHAPES, function, plain
from silent_mistakes import MISTAKES, NOTES
from under_the_doctor import ENGINES, ONLY_TORCH, engine_called, names_of, run

from backlight import lens
from backlight.lens.doctor.rule_index import rules
from backlight.lens.finding import Finding

NEEDS_PROCESSES = {"BL714"}
OF_RULES = [
    (rule.id, textwrap.dedent(rule.wrong).lstrip(), engine, {"strict": True, "notes": True})
    for rule in rules().values()
    for engine in ENGINES
    if rule.id not in NEEDS_PROCESSES and (engine == "torch" or rule.id not in ONLY_TORCH)
]
OF_MISTAKES = [
    (one.name, one.wrong, engine, {"strict": one.strict, "notes": True})
    for one in (*MISTAKES, *OF_OPTIMISERS)
    for engine in one.engines
]
OF_NOTES = [
    (slug, source, engine, {"notes": True})
    for number, (slug, source) in enumerate((*NOTES, *NOTES_OF_OPTIMISERS))
    for engine in ENGINES[number % 2 : number % 2 + 1]
]
PROGRAMS = [*OF_RULES, *OF_MISTAKES, *OF_NOTES]
AT_THE_END = ("BL407", "BL408", "BL705", "BL707", "BL709", "BL721", "BL722", "BL723", "BL727", "BL805")
NAME = re.compile(r"<program \d+>")


def found_in(source: str, engine: str, **options) -> list[tuple]:
    """Run a program under the doctor, and return all that it says of it, in words, but for the program's own name."""
    visit = lens.doctor(engines=[engine_called(engine)], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception, SystemExit):
            run(source, engine, visit)
    assert not any(watch.failed for watch in visit.session.watches)
    return sorted(map(in_words, visit.session.findings))


def in_words(found: Finding) -> tuple[str, ...]:
    """Return a finding as text."""
    place = found.place and (found.place.line, found.place.text)
    said = (found.rule, found.title, place, found.evidence, found.cause, found.cure, found.corrected, found.times)
    return tuple(NAME.sub("<program>", str(one)) for one in said)


@pytest.mark.parametrize(
    ("source", "engine", "options"), [one[1:] for one in PROGRAMS], ids=[f"{one[0]}-{one[2]}" for one in PROGRAMS]
)
def test_a_mistake_inside_of_main_is_found_as_one_at_module_level(source: str, engine: str, options: dict):
    at_module_level = found_in(plain(source), engine, **options)
    assert found_in(function(source), engine, **options) == at_module_level != []


@pytest.mark.parametrize("shape", SHAPES, ids=[one.__name__ for one in SHAPES])
@pytest.mark.parametrize("rule", AT_THE_END)
def test_what_is_judged_at_the_end_is_found_in_every_shape(rule: str, shape: Callable[[str], str]):
    source = textwrap.dedent(rules()[rule].wrong).lstrip()
    engine = ENGINES[(AT_THE_END.index(rule) + SHAPES.index(shape)) % 2]
    assert rule in [found[0] for found in found_in(shape(source), engine, strict=True, notes=True)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", ["BL707", "BL721"])
def test_a_decorated_function_and_a_decorated_method_print_it(rule: str, engine: str, capsys):
    body = textwrap.indent(textwrap.dedent(rules()[rule].wrong).lstrip(), "        ")
    space = run(f"class Trainer:\n    def train(self=None):\n{body}\n", engine)
    trainer = space["Trainer"]
    trainer.train = lens.doctor(engines=[engine_called(engine)])(trainer.train)
    with names_of(engine):
        trainer().train()
        trainer.train()
    assert [found.rule for found in trainer.train.report] == [rule]
    assert capsys.readouterr().err.count(f"{rule} warning") == 2


TRAINER = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.unused = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(3, 3)
        self.extra = [nn.Linear(4, 4)]

    def forward(self, x):
        return self.head(self.extra[0](self.body(x)))

class Trainer:
    def __init__(self):
        self.model = Model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def train(self):
        for step in range(3):
            self.optimizer.zero_grad()
            self.model(torch.ones(2, 3)).square().mean().backward()
            self.optimizer.step()

def main():
    trainer = Trainer()
    trainer.train()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", ["main()", "trainer = Trainer(); trainer.train()", "for _ in range(3): main()"])
def test_a_trainer_that_is_gone_is_judged_as_one_that_lives(call: str, engine: str):
    found = found_in(f"{TRAINER}\n{call}\n", engine)
    assert [one[0] for one in found] == ["BL707", "BL721"]
    assert found[0][1].startswith("unused.weight, unused.bias")


MENDED = """
def main():
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    x = torch.ones(3, 2)
    for step in range(3):
        optimizer.zero_grad()
        first(x).sum().backward()
        optimizer.step()
    {mended}
main()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "mended",
    [
        "second(x).sum().backward()",
        "torch.autograd.grad(second(x).sum(), list(second.parameters()))",
        "second.requires_grad_(False); optimizer.step()",
        "for one in second.parameters(): one.grad = torch.ones_like(one)\n    optimizer.step()",
    ],
)
def test_a_gradient_that_comes_late_is_no_finding_after_the_function_either(mended: str, engine: str):
    source = MENDED.format(mended=mended)
    assert found_in(source, engine) == []
    assert found_in(MENDED.format(mended="pass"), engine) != []


@pytest.mark.parametrize("engine", ENGINES)
def test_layers_registered_later_and_optimizers_that_are_gone_are_no_findings(engine: str):
    registered = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        for number, layer in enumerate(self.layers):
            self.add_module(str(number), layer)

    def forward(self, x):
        return self.layers[1](self.layers[0](x))

def main():
    Model()(torch.ones(1, 2)).sum().backward()
main()
"""
    assert found_in(registered, engine) == []
    read = """
def main(w):
    optimizer = torch.optim.SGD([w], lr=0.1)
    for step in range(4):
        (w * 2).sum().backward()
        print(w.grad)
for _ in range(3):
    main(torch.ones(2, requires_grad=True))
"""
    assert found_in(read, engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_model_is_not_kept_alive(engine: str):
    source = """
import gc, weakref
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2)]
        self.unused = nn.Linear(2, 2)
    def forward(self, x):
        return self.layers[0](x)
def main():
    model = Model()
    optimizer = torch.optim.SGD([*model.parameters(), *model.layers[0].parameters()], lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 2)).sum()
        loss.backward()
        optimizer.step()
    return [weakref.ref(one) for one in (model, optimizer, loss, model.unused.weight, model.layers[0].weight)]
alive = main()
torch.ones(1)  # backlight keeps the last op's result until the next
gc.collect()
assert all(one() is None for one in alive)
done = True
"""
    visit = lens.doctor(engines=[engine_called(engine)], notes=True)
    assert run(source, engine, visit)["done"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_doctor_in_each_thread_judges_its_own(engine: str):
    reports = []

    def examine() -> None:
        with names_of(engine), lens.doctor(engines=[engine_called(engine)]) as report:
            main()
        reports.append([found.rule for found in report])

    main = run(TRAINER, engine)["main"]
    for _ in range(2):
        thread = threading.Thread(target=examine)
        thread.start()
        thread.join()
    assert [sorted(one) for one in reports] == [["BL707", "BL721"]] * 2
