"""Slips of a line, and programs that look like them and are right: closures, copies, loops over gradients, names."""

import textwrap

import pytest
from under_the_doctor import ENGINES, findings_of

BOTH = pytest.mark.parametrize("engine", ENGINES)


def found_in(source: str, engine: str = "torch") -> list:
    return findings_of(textwrap.dedent(source).lstrip(), engine)


def the_finding(rule: str, source: str, engine: str = "torch"):
    (found,) = [one for one in found_in(source, engine) if one.rule == rule]
    return found


TRAINING = """
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    {}
    optimizer.step()
"""


@pytest.mark.filterwarnings("ignore")
def test_a_closure_clears_gradients_before_its_backward():
    source = """
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.1, max_iter=3)
    def closure():
        loss = (w - 2).square().sum()
        loss.backward()
        return loss
    for step in range(6):
        optimizer.step(closure)
    """
    found = the_finding("BL703", source)
    assert found.corrected == "optimizer.zero_grad()\nloss.backward()"
    assert found.corrected_at is None or found.corrected_at.line == 5
    assert "in the closure" in found.cure


def test_where_a_closure_does_not_reach_the_optimizer_no_line_is_offered():
    source = """
    def closure_of(w):
        def closure():
            loss = (w - 2).square().sum()
            loss.backward()
            return loss
        return closure
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.1, max_iter=3)
    evaluate = closure_of(w)
    for step in range(6):
        optimizer.step(evaluate)
    """
    found = the_finding("BL703", source)
    assert found.corrected is None
    assert "in the closure" in found.cure


COPIED = """
a = torch.ones(2, requires_grad=True)
loss = (a * 2).sum()
{}
"""


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_a_copy_in_a_loss_is_replaced_by_the_tensor(engine):
    found = the_finding("BL505", COPIED.format("(loss + torch.tensor(a.square().sum())).backward()"), engine)
    assert found.corrected == "(loss + a.square().sum()).backward()"
    assert "use the tensor itself" in found.cure


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_a_copy_of_a_tensor_without_history_is_a_clone(engine):
    found = the_finding("BL505", COPIED.format("b = loss.detach()\nc = torch.tensor(b)\nloss.backward()"), engine)
    assert found.corrected == "c = b.detach().clone()"


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_a_copy_with_history_that_no_loss_depends_on_gets_no_line(engine):
    found = the_finding("BL505", COPIED.format("kept = [torch.tensor(loss)]\nloss.backward()"), engine)
    assert found.corrected is None


@pytest.mark.parametrize("converted", ["torch.from_numpy(np.sin(h.numpy()))", "torch.tensor(h.numpy())"])
def test_an_array_that_a_forward_goes_on_with_is_not_detached(converted):
    source = f"""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
        def forward(self, x):
            h = self.layer(x)
            return {converted}
    Model()(torch.ones(1, 2)).sum().backward()
    """
    found = the_finding("BL501", source)
    assert found.corrected is None
    assert "tensor functions" in found.cure


def test_the_infinite_factor_of_a_product_is_named():
    source = """
    p = torch.tensor([0.0, 1.0], requires_grad=True)
    logs = torch.log(p)
    torch.where(p > 0, p * logs, torch.zeros_like(p)).sum().backward()
    """
    found = the_finding("BL802", source)
    assert "torch.log(safe)" in found.cure
    assert (found.corrected, found.corrected_at.line) == ("logs = torch.log(p.clamp_min(1e-12))", 2)


def test_an_infinite_constant_is_no_op_to_make_safe():
    source = """
    p = torch.tensor([0.0, 1.0], requires_grad=True)
    scale = torch.tensor([float("inf"), 1.0])
    torch.where(p > 0, p * scale, torch.zeros_like(p)).sum().backward()
    """
    found = the_finding("BL802", source)
    assert "torch.mul" not in found.cure
    assert "keep both factors finite" in found.cure


STAGES = """
trunk, head = nn.Linear(1, 1), nn.Linear(1, 1)
both = nn.ModuleList([trunk, head])
{before}
trunk(torch.ones(1, 1)).sum().backward()
{after}
"""


@BOTH
@pytest.mark.parametrize(
    ("line", "corrected"),
    [
        ("for p in both.parameters(): p.grad.mul_(0.5)", None),
        ("for p in both.parameters():\n    p.grad *= 0.5", "if p.grad is not None: p.grad *= 0.5"),
        (
            "total = sum(p.grad.norm() for p in both.parameters())",
            "total = sum(p.grad.norm() for p in both.parameters() if p.grad is not None)",
        ),
        (
            "for name, p in both.named_parameters():\n    p.data -= 0.1 * p.grad",
            "if p.grad is not None: p.data -= 0.1 * p.grad",
        ),
    ],
)
def test_a_loop_over_gradients_skips_those_that_are_none(line, corrected, engine):
    (found,) = found_in(STAGES.format(before="", after=line), engine)
    assert (found.rule, found.corrected) == ("BL110", corrected)
    assert "Skip parameters" in found.cure


@pytest.mark.parametrize(
    "source",
    [
        "for p in nn.Linear(1, 1).parameters():\n    p.grad.mul_(0.5)",  # no backward has run
        "class A: grad = None\nfor p in [A()]:\n    p.grad.mul_(0.5)",  # no parameter
        "x = None\nx.data",
    ],
)
def test_another_none_is_not_that_of_a_loop_over_gradients(source):
    assert [one.rule for one in found_in(source) if one.rule == "BL110"] == []


@BOTH
@pytest.mark.parametrize(("name", "value"), [("require_grad", False), ("requires_grads", False)])
def test_a_misspelled_requires_grad_is_found(name, value, engine):
    found = the_finding("BL412", TRAINING.format(f"model.bias.{name} = {value}"), engine)
    assert found.corrected == f"model.bias.requires_grad = {value}"


@BOTH
@pytest.mark.parametrize(
    "line",
    [
        "model.bias.require_grad = True",  # as it is
        "model.bias.is_frozen = False",
        "model.bias._required_grad = False",
        "model.bias.required_grad = False; wanted = model.bias.required_grad",  # the program's own, which it reads
        "model.bias.require_grads = False; wanted = getattr(model.bias, 'require_grads')",
        "optimizer.lr = 0.1",  # as the groups have it
        "optimizer.note = 0.5",
        "optimizer.lr = 0.1 / (step + 1)\n    for group in optimizer.param_groups: group['lr'] = optimizer.lr",
    ],
)
def test_other_attributes_are_the_programs_own(line, engine):
    assert found_in(TRAINING.format(line), engine) == []


@BOTH
def test_an_attribute_of_the_programs_own_optimizer_may_be_an_option(engine):
    source = """
    class Descent(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})
            self.lr = lr
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p -= self.lr * p.grad
    """
    training = TRAINING.format("optimizer.lr = 0.01").replace("torch.optim.SGD", "Descent")
    assert found_in(textwrap.dedent(source) + training, engine) == []


@BOTH
def test_an_option_as_an_attribute_is_found(engine):
    found = the_finding("BL776", TRAINING.format("optimizer.weight_decay = 0.01"), engine)
    assert found.corrected == 'for group in optimizer.param_groups: group["weight_decay"] = 0.01'


RATIO = """
import copy
policy = nn.Linear(4, 3)
other = copy.deepcopy(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
states, actions, gains = torch.randn(8, 4), torch.randint(0, 3, (8, 1)), torch.randn(8, 1)
def logp(model):
    return model(states).log_softmax(1).gather(1, actions)
for step in range(6):
    new = logp(policy)
    {}
    loss = -((new - old).exp() * gains).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@BOTH
@pytest.mark.parametrize(
    "line",
    [
        "old = new.detach()",
        "other.load_state_dict(policy.state_dict()); old = logp(other)",  # other parameters: the gradient is right
        "old = logp(policy) * 1.001",
    ],
)
def test_a_ratio_that_has_a_gradient_is_right(line, engine):
    assert [one.rule for one in found_in(RATIO.format(line), engine) if one.rule == "BL777"] == []


@BOTH
def test_a_ratio_of_a_policy_with_itself_is_found(engine):
    assert the_finding("BL777", RATIO.format("old = logp(policy)"), engine).place.line == 11


@BOTH
def test_an_average_that_is_written_into_a_target_is_right(engine):
    source = """
    import copy
    target = copy.deepcopy(model)
    """
    line = """with torch.no_grad():
        for slow, fast in zip(target.parameters(), model.parameters()): slow.copy_(0.9 * slow + 0.1 * fast)"""
    training = TRAINING.format(line).replace("for step", textwrap.dedent(source).strip() + "\nfor step")
    assert found_in(training, engine) == []


@BOTH
@pytest.mark.parametrize("method", ["copy_weights", "init_tied_weights", "reset"])
def test_a_copy_of_a_parameter_may_be_meant(method, engine):
    source = f"""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(5, 2), nn.Linear(2, 5, bias=False)
            self.{method}()
        def {method}(self):
            self.out.weight = nn.Parameter(self.embedding.weight.data.clone())
        def forward(self, x):
            return self.out(self.embedding(x))
    Model()(torch.tensor([1, 2])).square().sum().backward()
    """
    assert found_in(source, engine) == []


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_the_divergence_is_mended_where_it_is_made(engine):
    source = """
    divergence = nn.KLDivLoss()
    scores = torch.randn(4, 10, requires_grad=True)
    divergence(F.log_softmax(scores, dim=1), torch.softmax(torch.randn(4, 10), dim=1)).backward()
    """
    found = the_finding("BL775", source, engine)
    assert (found.corrected, found.corrected_at.line) == ('divergence = nn.KLDivLoss(reduction="batchmean")', 1)


VALUES = """
net, value = nn.Linear(4, 3), nn.Linear(4, 1)
s, s2, r, a, gamma = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8), torch.randint(0, 3, (8, 1)), 0.95
done, old = torch.tensor([0.0, 1.0] * 4), copy.deepcopy(net).requires_grad_(False)
q, v, v2 = net(s).gather(1, a).squeeze(1), value(s).squeeze(1), value(s2).squeeze(1)
"""


@BOTH
@pytest.mark.parametrize(
    ("target", "loss"),
    [
        ("r + gamma * net(s2).max(1).values * (1 - done)", "(q - y).pow(2).mean()"),
        ("r + gamma * (1 - done) * net(s2).max(1)[0]", "((y - q) ** 2).mean()"),
        ("r + 0.9 * v2", "0.5 * (y - v).square().mean()"),
        ("r + gamma * v2 * (1 - done) - v", "(y * y).mean()"),
        ("r[:, None] + gamma * value(s2)", "(y - value(s)).pow(2).sum()"),
        ("r + 0.9 * v2", "F.mse_loss(y, v)"),
        ("r + gamma * net(s2).max(1).values", "F.smooth_l1_loss(q, y)"),
    ],
)
def test_a_bootstrapped_target_with_a_graph_is_found_where_it_is_made(target, loss, engine):
    (found,) = found_in(f"{VALUES}y = {target}\nloss = {loss}\nloss.backward()\n", engine)
    assert found.rule == "BL749" and found.place.line == 5


@BOTH
@pytest.mark.parametrize(
    "loss",
    [
        "(q - (r + gamma * net(s2).max(1).values).detach()).pow(2).mean()",
        "F.mse_loss(r + 0.9 * v2.detach(), v)",
        "(q - (r + gamma * old(s2).max(1).values)).pow(2).mean()",
        "(net(s) - 0.9 * net(s2)).pow(2).mean()",  # two views
        "F.mse_loss(r + 0.9 * v, r + 0.9 * v2) + (r + 0.9 * v - (r + 0.9 * v2)).pow(2).mean()",  # of a residual model
        "(v - (0.1 * r + 0.9 * v)).pow(2).mean()",  # labels mixed with the same output
        "(r + 0.1 * v2 - v).pow(2).mean() + (v2 - (v + 0.9 * s.mean(1))).pow(2).mean()",  # steps of an equation
    ],
)
def test_other_differences_of_two_outputs_are_silent(loss, engine):
    assert found_in(f"{VALUES}loss = {loss}\nloss.backward()\n", engine) == []


@BOTH
def test_an_error_of_temporal_differences_that_is_only_shown_is_silent(engine):
    source = (
        "print((r + 0.9 * v2 - v).pow(2).mean().item())\n(v - (r + 0.9 * v2).detach()).square().mean().backward()\n"
    )
    assert found_in(VALUES + source, engine) == []
