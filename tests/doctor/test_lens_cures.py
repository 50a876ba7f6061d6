"""Cures that work: corrected lines name what their place reaches, and a program with them ends in no finding."""

import textwrap
from dataclasses import dataclass, replace

import pytest
from under_the_doctor import ENGINES, findings_of

from backlight.lens.doctor.corrections.applying import applied
from backlight.lens.doctor.corrections.scopes import names_exist
from backlight.lens.records.record import Place


@dataclass(frozen=True)
class Wrong:
    """A program that makes a mistake: the finding, its line, the corrected line and where that stands."""

    name: str
    program: str
    rule: str
    line: int
    corrected: str | None
    at: int


PROGRAMS = (
    Wrong(
        "a number returned by a function",
        """
model = nn.Linear(3, 1)
x, y = torch.randn(4, 3), torch.randn(4, 1)
def loss_of():
    loss = F.mse_loss(model(x), y)
    return loss.item()
loss = loss_of()
loss.backward()
""",
        "BL217",
        8,
        "return loss",
        6,
    ),
    Wrong(
        "a sum of numbers",
        """
model = nn.Linear(3, 1)
total = 0.0
for i in range(3):
    total += F.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 1)).item()
total.backward()
""",
        "BL217",
        6,
        "total += F.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 1))",
        5,
    ),
    Wrong(
        "targets in a column",
        """
model = nn.Linear(3, 5)
F.cross_entropy(model(torch.randn(4, 3)), torch.zeros(4, 1, dtype=torch.long)).backward()
""",
        "BL006",
        3,
        "F.cross_entropy(model(torch.randn(4, 3)), torch.zeros(4, 1, dtype=torch.long).squeeze(1)).backward()",
        3,
    ),
    Wrong(
        "float64 from NumPy",
        """
model = nn.Linear(3, 5)
x = torch.from_numpy(np.random.randn(4,3))
model(x).sum().backward()
""",
        "BL002",
        4,
        "model(x.float()).sum().backward()",
        4,
    ),
    Wrong(
        "integer targets",
        """
model = nn.Linear(3, 1)
y = torch.ones(4,1, dtype=torch.long)
F.binary_cross_entropy_with_logits(model(torch.randn(4,3)), y).backward()
""",
        "BL002",
        4,
        "F.binary_cross_entropy_with_logits(model(torch.randn(4,3)), y.float()).backward()",
        4,
    ),
    Wrong(
        "view of a transposed tensor",
        """
x = torch.randn(2,3,4, requires_grad=True)
h = x.transpose(1,2)
h.view(2, 12).sum().backward()
""",
        "BL004",
        4,
        "h.reshape(2, 12).sum().backward()",
        4,
    ),
    Wrong(
        "no super().__init__()",
        """
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(x)
net = Net()
""",
        "BL009",
        4,
        "super().__init__()\nself.fc = nn.Linear(3, 1)",
        4,
    ),
    Wrong(
        "a Linear of the wrong size",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(64, 10)
    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))
net = Net()
net(torch.randn(2,1,8,8)).sum().backward()
""",
        "BL001",
        8,
        "self.fc = nn.Linear(144, 10)",
        6,
    ),
    Wrong(
        "a Conv2d of the wrong size",
        """
net = nn.Sequential(nn.Conv2d(3, 4, 3))
net(torch.randn(2,1,8,8)).sum().backward()
""",
        "BL001",
        3,
        "net = nn.Sequential(nn.Conv2d(1, 4, 3))",
        2,
    ),
    Wrong(
        "an LSTM of the wrong size",
        """
net = nn.LSTM(8, 4)
net(torch.randn(2,3,5))[0].sum().backward()
""",
        "BL001",
        3,
        "net = nn.LSTM(5, 4)",
        2,
    ),
    Wrong(
        "an embedding that is too small",
        """
net = nn.Embedding(10, 4)
net(torch.tensor([[1, 10]])).sum().backward()
""",
        "BL010",
        3,
        "net = nn.Embedding(11, 4)",
        2,
    ),
    Wrong(
        "indices of floats",
        """
net = nn.Embedding(10, 4)
net(torch.tensor([[1.0, 2.0]])).sum().backward()
""",
        "BL011",
        3,
        "net(torch.tensor([[1.0, 2.0]]).long()).sum().backward()",
        3,
    ),
    Wrong(
        "with no_grad()",
        """
model = nn.Linear(3, 1)
with torch.no_grad():
    out = model(torch.randn(2, 3))
loss = out.square().mean()
loss.backward()
""",
        "BL211",
        6,
        "with torch.enable_grad():",
        3,
    ),
    Wrong(
        "a decorator",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    @torch.no_grad()
    def forward(self, x):
        return self.fc(x)
model = Net()
loss = model(torch.randn(2, 3)).square().mean()
loss.backward()
""",
        "BL211",
        11,
        "@torch.enable_grad()",
        6,
    ),
    Wrong(
        "an optimizer of a trainer",
        """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()
    def fit(self):
        for _ in range(4):
            self.step(torch.randn(8, 3), torch.randn(8, 1))
Trainer(nn.Linear(3, 1)).fit()
""",
        "BL703",
        8,
        "self.optimizer.zero_grad()\nloss.backward()",
        8,
    ),
    Wrong(
        "an optimizer of another function",
        """
def compute(model, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
def main():
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        compute(model, torch.randn(8, 3), torch.randn(8, 1))
        opt.step()
main()
""",
        "BL703",
        4,
        "opt.step()\nopt.zero_grad()",
        10,
    ),
    Wrong(
        "an optimizer in a dict",
        """
def main():
    model = nn.Linear(3, 1)
    opts = {"main": torch.optim.SGD(model.parameters(), lr=0.01)}
    for _ in range(4):
        F.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()
        for o in opts.values(): o.step()
main()
""",
        "BL703",
        6,
        "opts['main'].zero_grad()\nF.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()",
        6,
    ),
    Wrong(
        "leaves updated in a loop",
        """
def main():
    layers = [torch.randn(3, 1, requires_grad=True)]
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    for _ in range(4):
        loss = F.mse_loss(x @ layers[0], y)
        loss.backward()
        with torch.no_grad():
            for w in layers:
                w -= 0.1 * w.grad
main()
""",
        "BL703",
        7,
        "w -= 0.1 * w.grad\nw.grad = None",
        10,
    ),
    Wrong(
        "a model updated by hand",
        """
def train(model):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    for _ in range(4):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        with torch.no_grad():
            for w in model.parameters():
                w -= 0.1 * w.grad
def main():
    net = nn.Linear(3, 1)
    train(net)
main()
""",
        "BL703",
        6,
        "model.zero_grad()\nloss.backward()",
        6,
    ),
    Wrong(
        "PGD that clamps",
        """
def attack(model, x, y, eps=0.3, alpha=0.1, steps=3):
    adv = x.clone().detach().requires_grad_(True)
    for _ in range(steps):
        loss = F.cross_entropy(model(adv), y)
        loss.backward()
        adv = adv + alpha * adv.grad.sign()
        adv = torch.clamp(adv, 0, 1)
    return adv
attack(nn.Linear(4, 3), torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1]))
""",
        "BL409",
        7,
        "adv = torch.clamp(adv, 0, 1).detach().requires_grad_()",
        8,
    ),
    Wrong(
        "PGD under no_grad",
        """
def attack(model, x, y, eps=0.3, alpha=0.1, steps=3):
    adv = x.clone().detach().requires_grad_(True)
    for _ in range(steps):
        loss = F.cross_entropy(model(adv), y)
        loss.backward()
        with torch.no_grad():
            adv = adv + alpha * adv.grad.sign()
    return adv
attack(nn.Linear(4, 3), torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1]))
""",
        "BL103",
        8,
        "adv = (adv + alpha * adv.grad.sign()).detach().requires_grad_()",
        8,
    ),
    Wrong(
        "PGD of a delta",
        """
def attack(model, x, y, eps=0.3, alpha=0.1, steps=3):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        delta = (delta + alpha * delta.grad.sign()).clamp(-eps, eps)
    return delta
attack(nn.Linear(4, 3), torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1]))
""",
        "BL409",
        7,
        "delta = (delta + alpha * delta.grad.sign()).clamp(-eps, eps).detach().requires_grad_()",
        7,
    ),
    Wrong(
        "a GAN",
        """
def main():
    G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    opt_g = torch.optim.SGD(G.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(D.parameters(), lr=0.01)
    bce = nn.BCEWithLogitsLoss()
    for _ in range(3):
        real = torch.randn(16, 2)
        fake = G(torch.randn(16, 4))
        opt_d.zero_grad()
        d_loss = bce(D(real), torch.ones(16, 1)) + bce(D(fake), torch.zeros(16, 1))
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = bce(D(fake), torch.ones(16, 1))
        g_loss.backward()
        opt_g.step()
main()
""",
        "BL204",
        17,
        "d_loss = bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))",
        12,
    ),
    Wrong(
        "a GAN, generator first",
        """
class Gan:
    def __init__(self):
        self.G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.opt_g = torch.optim.SGD(self.G.parameters(), lr=0.01)
        self.opt_d = torch.optim.SGD(self.D.parameters(), lr=0.01)
    def step(self, real):
        bce = F.binary_cross_entropy_with_logits
        fake = self.G(torch.randn(16, 4))
        self.opt_g.zero_grad()
        bce(self.D(fake), torch.ones(16, 1)).backward()
        self.opt_g.step()
        self.opt_d.zero_grad()
        d_loss = bce(self.D(real), torch.ones(16, 1)) + bce(self.D(fake), torch.zeros(16, 1))
        d_loss.backward()
        self.opt_d.step()
gan = Gan()
gan.step(torch.randn(16, 2))
""",
        "BL204",
        16,
        "d_loss = bce(self.D(real), torch.ones(16, 1)) + bce(self.D(fake.detach()), torch.zeros(16, 1))",
        15,
    ),
    Wrong(
        "a GAN with one forward",
        """
def main():
    G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    opt_g = torch.optim.SGD(G.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(D.parameters(), lr=0.01)
    bce = nn.BCEWithLogitsLoss()
    for _ in range(3):
        real = torch.randn(16, 2)
        fake = G(torch.randn(16, 4))
        pred_fake = D(fake)
        d_loss = bce(D(real), torch.ones(16, 1)) + bce(pred_fake, torch.zeros(16, 1))
        g_loss = bce(pred_fake, torch.ones(16, 1))
        opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        opt_d.step()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
main()
""",
        "BL305",
        18,
        None,
        0,
    ),
    Wrong(
        "a root times 0",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
(torch.sqrt(x) * 0).sum().backward()
""",
        "BL802",
        3,
        "(torch.sqrt(x + 1e-12) * 0).sum().backward()",
        3,
    ),
    Wrong(
        "roots that a mask removes",
        """
w = torch.zeros(3, 2, requires_grad=True)
mask = torch.tensor([0.0, 1.0, 1.0])
x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
d = torch.sqrt(((x * w) ** 2).sum(1))
(d * mask).sum().backward()
""",
        "BL802",
        5,
        "d = torch.sqrt(((x * w) ** 2).sum(1) + 1e-12)",
        5,
    ),
    Wrong(
        "a root that where() removes",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x)).sum().backward()
""",
        "BL802",
        3,
        "torch.where(x > 0, torch.sqrt(x + 1e-12), torch.zeros_like(x)).sum().backward()",
        3,
    ),
    Wrong(
        "a quotient that where() removes",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
torch.where(x > 0, 1.0 / x, torch.zeros_like(x)).sum().backward()
""",
        "BL802",
        3,
        "torch.where(x > 0, 1.0 / (x + 1e-8), torch.zeros_like(x)).sum().backward()",
        3,
    ),
    Wrong(
        "a list of losses",
        """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(16):
    loss = model(torch.randn(5, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(len(losses))
""",
        "BL709",
        10,
        "losses.append(loss.item())",
        10,
    ),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wrong", PROGRAMS, ids=[one.name for one in PROGRAMS])
def test_a_program_with_its_corrected_line_ends_in_no_finding(wrong: Wrong, engine: str):
    (found,) = findings_of(wrong.program, engine)
    assert (found.rule, found.place.line, found.corrected) == (wrong.rule, wrong.line, wrong.corrected)
    if wrong.corrected is None:
        return
    assert (found.corrected_at or found.place).line == wrong.at
    assert findings_of(applied(wrong.program, [found]), engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_product_with_0_is_not_called_a_choice(engine: str):
    source = "x = torch.tensor([0.0, 1.0], requires_grad=True)\n(torch.sqrt(x) * 0).sum().backward()\n"
    (found,) = findings_of(source, engine)
    assert "product with 0" in found.cause and "where()" not in found.cause and "log" not in found.cure


def test_a_gan_is_not_told_to_add_its_losses():
    gan = next(one for one in PROGRAMS if one.name == "a GAN")
    (found,) = findings_of(gan.program, "torch")
    assert "fake.detach()" in found.cure and "Add the losses" not in found.cure


SCOPES = """
import torch
optimizer = None
class Trainer:
    name = "x"
    def step(self, loss):
        loss.backward()
        def inner(batch):
            return batch
    def other(self):
        model = 1
"""


@pytest.mark.parametrize(
    "text, line, known",
    [
        ("optimizer.zero_grad()", 7, True),
        ("self.optimizer.zero_grad()\nloss.backward()", 7, True),
        ("model.zero_grad()", 7, False),
        ("name = name", 7, True),
        ("print(name)", 7, False),
        ("batch = loss + batch.sum()", 9, True),
        ("self", 3, False),
        ("with torch.no_grad():", 7, True),
        ("@torch.enable_grad()", 6, True),
    ],
)
def test_names_exist_where_a_line_stands(text: str, line: int, known: bool, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCOPES)
    assert names_exist(text, Place(str(path), line, "", "")) is known


def test_corrections_are_put_in_from_the_last_line_up():
    source = textwrap.dedent(
        """
        for step in range(4):
            (w * 2).backward(
            )
            w -= 1
        """
    )
    (found,) = findings_of("w = torch.ones(2, requires_grad=True)\n(w * 2).backward()\n", "torch")
    place = Place("x", 3, "", "(w * 2).backward(")
    mended = applied(source, [replace(found, place=place, corrected="(w * 2).sum().backward()")])
    assert mended == "\nfor step in range(4):\n    (w * 2).sum().backward()\n    w -= 1\n"
