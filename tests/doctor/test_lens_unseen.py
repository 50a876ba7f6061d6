"""Mistakes in shapes that unseen scripts brought, each with the words and the line of its finding.

The near misses of whole programs are in tests/healthy: advantages, first_batches, reshaped_sequences, unused_steps.
"""

import textwrap

import pytest
from under_the_doctor import ENGINES, findings_of

BOTH = pytest.mark.parametrize("engine", ENGINES)
TRAINING = """
from torch.utils.data import DataLoader, TensorDataset
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
POLICY = """
policy, critic = nn.Linear(3, 4), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*policy.parameters(), *critic.parameters()], lr=0.1)
states, actions, returns = torch.randn(8, 3), torch.randint(0, 4, (8,)), torch.randn(8)
"""
LOOP = """
loader = DataLoader(TensorDataset(torch.randn(24, 4)), batch_size=8)
for step in range(14):
"""


def found_in(source: str, engine: str = "torch") -> list:
    return findings_of(textwrap.dedent(source).lstrip(), engine)


def only(rule: str, source: str, engine: str = "torch"):
    (found,) = found_in(source, engine)
    assert found.rule == rule
    return found


@BOTH
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rule", "program", "corrected"),
    [
        ("BL206", "kept = []\n@    loss = model(x).square().mean() + sum(one.mean() for one in kept)\n    STEP\n"
         "    kept.append(loss)", "kept.append(loss.detach())"),
        ("BL206", "cache = {}\n@    z = torch.tanh(model(x)) + cache.get(step - 1, 0)\n    loss = z.mean()\n    STEP\n"
         "    cache[step] = z", "cache[step] = z.detach()"),
        ("BL206", "total = 0\n@    total += model(x).square().mean()\n    loss = total / (step + 1)\n    STEP", None),
        ("BL709", "log = {'loss': []}\n@    loss = model(x).square().mean()\n    STEP\n    log['loss'].append(loss)",
         "log['loss'].append(loss.item())"),
        ("BL709", "history = []\n@    loss = model(x).square().mean()\n    STEP\n"
         "    history.append(model(x).mean() + 1)\nprint(sum(history))",
         "history.append((model(x).mean() + 1).detach())"),
    ],
)  # fmt: skip
def test_what_keeps_a_graph_is_named_with_the_line_that_fills_it(rule, program, corrected, engine):
    loop = "for step in range(14):\n    x = torch.randn(8, 4)\n"
    source = TRAINING + program.replace("@", loop).replace("STEP", STEP)
    assert only(rule, source, engine).corrected == corrected


@BOTH
def test_an_attribute_that_carries_a_state_is_named(engine):
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.state = nn.GRUCell(3, 4), None
        def forward(self, x):
            if self.state is None:
                self.state = torch.zeros(len(x), 4)
            h = self.cell(x, self.state)
            self.state = h
            return h
    net = Net()
    for _ in range(2):
        net(torch.randn(2, 3)).sum().backward()
    """
    found = only("BL206", source, engine)
    assert found.corrected == "self.state = h.detach()"
    assert "net.state keeps its graph from one iteration to the next" in found.evidence


@BOTH
def test_a_module_that_cannot_be_copied_names_the_attribute(engine):
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = nn.Linear(3, 4), []
        def forward(self, x):
            self.seen.append(torch.relu(self.layer(x)))
            return self.seen[-1]
    net = Net()
    net(torch.randn(2, 3))
    copy.deepcopy(net)
    """
    assert only("BL405", source, engine).corrected == "self.seen.append(torch.relu(self.layer(x)).detach())"


@BOTH
@pytest.mark.parametrize("made", ["model.parameters()", "filter(lambda p: p.requires_grad, model.parameters())"])
def test_parameters_that_were_used_up_become_a_list(made, engine):
    source = f"model = nn.Linear(2, 1)\nparams = {made}\nprint(len(list(params)))\ntorch.optim.SGD(params, lr=0.1)\n"
    found = only("BL702", source, engine)
    assert found.corrected == f"params = list({made})" and found.corrected_at.line == 2


@BOTH
def test_an_optimizer_of_a_model_without_parameters_is_not_said_to_be_used_up(engine):
    found = only("BL702", "params = nn.ReLU().parameters()\ntorch.optim.SGD(params, lr=0.1)\n", engine)
    assert "used up" not in found.title and found.corrected is None


def test_a_gradient_that_is_to_be_differentiated_gets_create_graph_also_through_a_penalty():
    source = """
    net, x = nn.Linear(3, 1), torch.randn(4, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(net(x).sum(), x)
    (grad.norm() - 1).square().backward()
    """
    assert only("BL603", source).corrected.endswith("x, create_graph=True)")


@BOTH
def test_a_transposed_gradient_of_a_function_is_not_to_be_reshaped(engine):
    source = """
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w.t()
        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad @ w, x.t() @ grad
    w = torch.ones(2, 3, requires_grad=True)
    Product.apply(torch.ones(4, 3), w).sum().backward()
    """
    found = only("BL907", source, engine)
    assert "transpose" in found.cause and "grad.t() @ x" in found.cure


@BOTH
def test_the_generators_samples_are_detached_in_the_discriminators_step_only(engine):
    source = """
    def train_d(d, optimizer, fake):
        optimizer.zero_grad()
        loss = d(fake).square().mean()
        loss.backward()
        optimizer.step()
    def train_g(d, optimizer, fake):
        optimizer.zero_grad()
        loss = (d(fake) - 1).square().mean()
        loss.backward()
        optimizer.step()
    g, d = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    for_g, for_d = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    fake = g(torch.randn(5, 2))
    train_d(d, for_d, fake)
    train_g(d, for_g, fake)
    """
    found = only("BL204", "def main():\n" + textwrap.indent(textwrap.dedent(source), "    ") + "main()\n", engine)
    assert found.corrected == "loss = d(fake.detach()).square().mean()"


@BOTH
@pytest.mark.parametrize("size", [1, 8])
def test_of_several_loaders_the_one_is_named_that_leaves_one_sample_over(size, engine):
    source = f"""
    from torch.utils.data import DataLoader, TensorDataset
    others = DataLoader(TensorDataset(torch.randn(16, 3)), batch_size=8)
    loader = DataLoader(TensorDataset(torch.randn(17, 3)), batch_size={size})
    net = nn.BatchNorm1d(3)
    for (x,) in loader:
        net(x)
    """
    found = only("BL008", source, engine)
    expected = None if size == 1 else f"{source.splitlines()[3].strip()[:-1]}, drop_last=True)"
    assert found.corrected == expected


def test_a_schedule_that_is_too_short_is_named_with_its_length():
    source = """
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=3)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    """
    found = [one for one in found_in(source) if one.rule == "BL765"]
    assert any("is for 3 steps" in text for text in found[0].evidence)


def test_a_closure_that_returns_nothing_is_named():
    source = """
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.1)
    def closure():
        optimizer.zero_grad()
        (w - 2).square().sum().backward()
    optimizer.step(closure)
    """
    assert only("BL782", source).title == "the closure of an optimizer returns nothing"


def test_float_of_none_outside_of_an_optimizer_is_none_of_our_business():
    assert found_in("def loss(): pass\nfloat(loss())\n") == []


@BOTH
@pytest.mark.parametrize(
    ("loss", "corrected"),
    [
        ("-(chosen * advantage).mean() + advantage.pow(2).mean()",
         "loss = -(chosen * advantage.detach()).mean() + advantage.pow(2).mean()"),
        ("F.mse_loss(value, returns) - ((returns - value) * chosen).mean()",
         "loss = F.mse_loss(value, returns) - ((returns - value).detach() * chosen).mean()"),
        ("-torch.min(chosen.exp() * advantage, chosen.exp() * advantage).mean() + advantage.pow(2).mean()", None),
        ("(F.cross_entropy(policy(states), actions, reduction='none') * advantage).mean() + advantage.square().mean()",
         "loss = (F.cross_entropy(policy(states), actions, reduction='none') * advantage.detach()).mean() + "
         "advantage.square().mean()"),
    ],
)  # fmt: skip
def test_an_advantage_with_a_graph_is_detached_where_it_weights(loss, corrected, engine):
    advantage = "advantage = returns - value" if "advantage" in loss else ""
    chosen = "policy(states).log_softmax(1).gather(1, actions[:, None]).squeeze(1)"
    source = (
        POLICY
        + f"""
for _ in range(4):
    value = critic(states).squeeze(1)
    {advantage}
    {f"chosen = {chosen}" if "chosen" in loss else ""}
    loss = {loss}
    {STEP}
"""
    )
    assert only("BL779", source, engine).corrected == corrected


def test_log_probabilities_of_a_distribution_are_followed():
    source = (
        POLICY
        + f"""
for _ in range(4):
    advantage = returns - critic(states).squeeze(1)
    scored = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
    loss = advantage.square().mean() - (torch.stack([scored, scored]) * advantage).mean()
    {STEP}
"""
    )
    assert only("BL779", source).place.line == 8


@BOTH
@pytest.mark.parametrize(
    ("body", "cure"),
    [
        ("    (x,) = next(iter(loader))\n    loss = model(x.double().float()).mean()\n    STEP", "Iterate over"),
        (
            "    for (x,) in loader:\n        loss = model(x).mean()\n        STEP\n        break",
            "Remove the `break`",
        ),
    ],
)
def test_a_loop_that_never_gets_past_the_first_batch_is_found(body, cure, engine):
    source = TRAINING + LOOP + body.replace("STEP", STEP)
    assert only("BL780", source, engine).cure.startswith(cure)


@BOTH
@pytest.mark.parametrize(
    ("layer", "use", "rule", "corrected"),
    [
        ("nn.GRU(3, 4)", "out.view(6, -1)", "BL781", "loss = out.transpose(0, 1).reshape(6, -1).mean()"),
        ("nn.GRU(3, 4)", "F.relu(out).reshape(6, -1)", "BL781",
         "loss = F.relu(out).transpose(0, 1).reshape(6, -1).mean()"),
        ("nn.GRU(3, 4, bidirectional=True)", "h.view(6, -1)", "BL781",
         "loss = h.transpose(0, 1).reshape(6, -1).mean()"),
        ("nn.GRU(3, 4)", "out[:, -1]", "BL783", None),
        ("nn.GRU(3, 4)", "out.mean(dim=1)", "BL783", None),
        ("nn.GRU(3, 4, batch_first=True)", "out[-1]", "BL783", None),
    ],
)  # fmt: skip
def test_a_batch_that_is_taken_for_time_is_found(layer, use, rule, corrected, engine):
    source = f"layer = {layer}\nout, h = layer(torch.randn(5, 6, 3))\nloss = {use}.mean()\nloss.backward()\n"
    assert only(rule, source, engine).corrected == corrected


@BOTH
def test_images_whose_axes_are_relabelled_get_a_permutation(engine):
    source = "layer = nn.Conv2d(3, 2, 2)\nx = torch.rand(4, 5, 5, 3).view(4, 3, 5, 5)\nlayer(x).mean().backward()\n"
    assert only("BL781", source, engine).cure == "Use permute(0, 3, 1, 2), which moves the dims."


@BOTH
def test_a_recurrent_layer_in_no_optimizer_is_not_said_to_hold_a_plain_list(engine):
    source = f"""
    layer, head = nn.GRU(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(5):
        loss = head(layer(torch.randn(5, 6, 3))[0][-1]).mean()
        {STEP}
    """
    assert {one.rule for one in found_in(source, engine)} <= {"BL731"}


@BOTH
@pytest.mark.parametrize(
    ("again", "cure", "corrected"),
    [
        ("b(x)", "Compute gate inside the loop, in each iteration.", None),
        ("a(x)", "Make gate a constant: gate.detach(), or compute it under torch.no_grad().", "gate = a(x).detach()"),
    ],
)
def test_what_is_computed_before_the_loop_is_recomputed_or_a_constant(again, cure, corrected, engine):
    source = f"""
    class Tanh(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
        def forward(self, x):
            return torch.tanh(self.layer(x))
    class Sigmoid(Tanh):
        def forward(self, x):
            return torch.sigmoid(self.layer(x))
    def train(a, b, x):
        gate = a(x)
        for _ in range(3):
            ({again} - gate).square().mean().backward()
    train(Tanh(), Sigmoid(), torch.ones(3, 2))
    """
    found = only("BL218", source, engine)
    assert (found.cure, found.corrected) == (cure, corrected)


@BOTH
def test_an_lstms_state_that_a_module_keeps_is_detached_as_a_tuple(engine):
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.state = nn.LSTM(2, 3), None
        def forward(self, x):
            out, state = self.lstm(x, self.state)
            self.state = state
            return out
    net = Net()
    for _ in range(2):
        net(torch.ones(4, 1, 2)).sum().backward()
    """
    assert only("BL206", source, engine).corrected == "self.state = tuple(one.detach() for one in state)"


@BOTH
def test_a_graph_that_retain_graph_keeps_over_a_step_is_to_be_detached(engine):
    source = """
    cell = nn.GRUCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(1, 3)
    for _ in range(3):
        h = cell(torch.ones(1, 2), h)
        optimizer.zero_grad()
        h.square().sum().backward(retain_graph=True)
        optimizer.step()
    """
    assert only("BL305", source, engine).cure.startswith("Detach the tensors that the next step uses")


@BOTH
def test_the_layer_that_writes_in_place_is_named(engine):
    source = """
    act = nn.ReLU(inplace=True)
    x = torch.ones(3, requires_grad=True)
    act(torch.tanh(x)).sum().backward()
    """
    assert any("made it an op in place: act = " in text for text in only("BL304", source, engine).evidence)


def test_gradcheck_may_write_through_data():
    source = """
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x
        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad
    torch.autograd.gradcheck(Square.apply, torch.rand(3, dtype=torch.float64, requires_grad=True))
    """
    assert found_in(source) == []


@BOTH
@pytest.mark.parametrize(("later", "found"), [(0.0, ["BL739"]), (0.1, [])])
def test_a_rate_that_rises_again_was_only_between_two_schedules(later, found, engine):
    source = f"""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        optimizer.param_groups[0]["lr"] = 0.1 if step < 10 else 0.0 if step < 21 else {later}
        loss = model(torch.ones(3, 2)).square().mean()
        {STEP}
    """
    assert [one.rule for one in found_in(source, engine)] == found
