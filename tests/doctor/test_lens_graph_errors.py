"""The doctor names the lines that PyTorch does not: which one saved, which wrote, which freed, which cut the graph."""

import pytest
from under_the_doctor import ENGINES, findings_of

from backlight.lens.doctor import places
from backlight.lens.doctor.report import describe

each_engine = pytest.mark.parametrize("engine", ENGINES)


def only(source: str, engine: str):
    (found,) = findings_of(source, engine)
    return found


@each_engine
def test_in_place_error_names_the_lines_that_saved_and_wrote(engine):
    found = only("x = torch.ones(3, requires_grad=True)\ny = x * 1\nz = y * y\ny.zero_()\nz.sum().backward()\n", engine)
    evidence = " ".join(found.evidence)
    assert (found.rule, found.place.line) == ("BL304", 5)
    assert "of shape [3] was saved at version 0 and is at version 1 now" in evidence
    assert "MulBackward0, made at line 3: z = y * y, saved it" in evidence
    assert "zero_ at line 4: y.zero_() wrote to it" in evidence


@each_engine
def test_all_writes_since_the_tensor_was_saved_are_named(engine):
    source = "x = torch.ones(3, requires_grad=True)\ny = torch.exp(x)\ny.add_(1)\ny.mul_(2)\ny.sum().backward()\n"
    evidence = " ".join(only(source, engine).evidence)
    assert "add_ at line 3" in evidence and "mul_ at line 4" in evidence


@each_engine
def test_no_writer_is_named_where_two_lines_may_have_done_it(engine):
    """Writes to two memories of the same size: only one was saved, and the message does not say which."""
    source = """
x = torch.ones(3, requires_grad=True)
y, other = torch.exp(x), torch.ones(3)
other.add_(1)
y.mul_(2)
y.sum().backward()
"""
    found = only(source, engine)
    assert "wrote to it" not in " ".join(found.evidence) and found.corrected is None


@each_engine
@pytest.mark.parametrize(
    ("rule", "source", "freed_at"),
    [
        ("BL203", "y = (x * x).sum()\ny.backward()\ny.backward()\n", 4),
        ("BL204", "h = torch.exp(x)\na, b = h.sum(), (h * h).sum()\na.backward()\nb.backward()\n", 5),
        ("BL206", "h = x\nfor _ in range(2):\n    h = torch.exp(h)\n    h.sum().backward()\n", 6),
    ],
)
def test_the_backward_that_freed_is_named(rule, source, freed_at, engine):
    found = only("\nx = torch.ones(3, requires_grad=True)\n" + source, engine)
    assert found.rule == rule
    assert f"backward() at line {freed_at}: " in " ".join(found.evidence)
    assert "freed it" in " ".join(found.evidence)


@each_engine
def test_a_loop_that_calls_backward_twice_on_one_graph_is_no_state_carried_over(engine):
    source = "x = torch.ones(3, requires_grad=True)\ny = (x * x).sum()\nfor _ in range(2):\n    y.backward()\n"
    assert only(source, engine).rule == "BL203"


@each_engine
def test_an_optimizer_that_wrote_in_between_is_named(engine):
    source = """
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(1, 2)).sum()
loss.backward(retain_graph=True)
optimizer.step()
loss.backward()
"""
    found = only(source, engine)
    assert (found.rule, found.place.line) == ("BL305", 7)
    assert "at line 6: optimizer.step() wrote to it" in " ".join(found.evidence)


@each_engine
@pytest.mark.parametrize(
    ("rule", "line", "cut"),
    [
        ("BL209", "k = x.argmax()", "argmax at line 2"),
        ("BL209", "k = x.detach()", "detach at line 2"),
        ("BL210", "k = torch.as_tensor([x.sum()])", "as_tensor at line 2"),
        ("BL211", "with torch.no_grad(): k = x * 2", "mul at line 2"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_line_that_cut_the_graph_is_named(rule, line, cut, engine):
    source = f"x = torch.ones(3, requires_grad=True)\n{line}\nloss = (k * 2.0).sum()\nloss.backward()\n"
    found = [one for one in findings_of(source, engine) if one.place.line == 4]
    assert [one.rule for one in found] == [rule]
    assert cut in " ".join(found[0].evidence), describe(found[0])


LOST = """
class Fit:
    def __init__(self):
        self.w = torch.zeros(3, requires_grad=True)
    def step(self, x, y):
        ((x @ self.w - y) ** 2).mean().backward()
        self.w = self.w - 0.1 * self.w.grad
fit = Fit()
for _ in range(2):
    fit.step(torch.ones(4, 3), torch.ones(4))
"""


@each_engine
@pytest.mark.filterwarnings("ignore")
def test_a_parameter_lost_in_an_attribute_is_recognised(engine):
    (found,) = findings_of(LOST, engine)
    assert (found.rule, found.place.line) == ("BL409", 7)
    assert found.corrected == "with torch.no_grad(): self.w -= 0.1 * self.w.grad"


@each_engine
@pytest.mark.filterwarnings("ignore")
def test_an_intermediate_result_that_is_rebound_is_no_lost_parameter(engine):
    source = "x = torch.ones(3, requires_grad=True)\nh = torch.exp(x)\nh = h * 2\nh.sum().backward()\nprint(h.grad)\n"
    found = only(source, engine)
    assert (found.rule, found.corrected) == ("BL101", "h = h * 2; h.retain_grad()")


@each_engine
@pytest.mark.filterwarnings("ignore")
def test_a_list_is_not_offered_as_the_loss(engine):
    made = "x = torch.ones(3, requires_grad=True)\nlosses = [x.sum()]\nloss = torch.tensor(losses).mean()\n"
    source = made + "loss.backward()\n"
    assert [(one.rule, one.corrected) for one in findings_of(source, engine)][-1] == ("BL210", None)


@each_engine
@pytest.mark.parametrize("state", ["h = None", "h = torch.zeros(1, 2)"])
def test_a_state_that_may_be_none_is_not_detached(state, engine):
    source = f"""
cell = nn.GRUCell(2, 2)
{state}
for _ in range(2):
    h = cell(torch.ones(1, 2), h)
    h.sum().backward()
"""
    found = only(source, engine)
    right = None if state.endswith("None") else "h = cell(torch.ones(1, 2), h.detach())"
    assert (found.rule, found.corrected) == ("BL206", right)


@each_engine
def test_a_backward_that_a_library_calls_is_shown_at_the_users_line(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "LIBRARIES", (*places.LIBRARIES, str(tmp_path)))
    library = str(tmp_path / "trainer.py")
    text = "def fit(loss):\n    loss.backward()\n"
    source = f"""
fit = {{}}
exec(compile({text!r}, {library!r}, "exec"), fit)
y = (torch.ones(3, requires_grad=True) ** 2).sum()
fit["fit"](y)
fit["fit"](y)
"""
    found = only(source, engine)
    assert (found.rule, found.place.line, found.corrected) == ("BL203", 6, None)
