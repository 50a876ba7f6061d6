"""Mistakes of which no engine says anything, each with its healthy twin; `# here` marks the line to be named."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A wrong program and a right one.

    Args:
        name: the mistake.
        rule: the finding's slug.
        says: what its evidence, its title or its cause must contain.
        wrong: the program that makes it; `# here` marks the line.
        right: the twin that does not, and that ends in no error or warning.
        corrected: the line that the finding offers, if it does.
        cure: what its advice must contain.
        alone: whether nothing else may be found beside it.
        engines: where it applies.
        strict: whether it takes strict mode.
    """

    name: str
    rule: str
    says: str
    wrong: str
    right: str
    corrected: str | None = None
    cure: str = ""
    alone: bool = False
    engines: tuple[str, ...] = ("torch", "backlight")
    strict: bool = False


LOOP = """
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
"""

MISTAKES = (
    Mistake(
        "zero_grad forgotten",
        "forgotten-zero-grad",
        "weight.grad still held the gradient of the previous step",
        LOOP
        + """
for step in range(4):
    loss = F.mse_loss(model(x), y)
    loss.backward()  # here
    optimizer.step()
""",
        LOOP
        + """
for step in range(8):
    loss = F.mse_loss(model(x), y) / 4
    loss.backward()
    print(model.weight.grad.norm().item())
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
""",
        corrected="optimizer.zero_grad()\nloss.backward()",
    ),
    Mistake(
        "zero_grad of another optimizer",
        "forgotten-zero-grad",
        "nothing cleared it",
        LOOP
        + """
other = torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.1)
for step in range(4):
    other.zero_grad()
    F.mse_loss(model(x), y).backward()  # here
    optimizer.step()
""",
        LOOP
        + """
for step in range(4):
    for param in model.parameters():
        param.grad = None
    F.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    ),
    Mistake(
        "zero_grad forgotten without an optimizer",
        "forgotten-zero-grad",
        "w.grad held",
        """
w = torch.ones(2, requires_grad=True)
for step in range(4):
    (w * w).sum().backward()  # here
    with torch.no_grad():
        w -= 0.1 * w.grad
""",
        """
w = torch.ones(2, requires_grad=True)
for step in range(4):
    (w * w).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
""",
    ),
    Mistake(
        "second backward through a graph that saved nothing",
        "backward-twice-accumulates",
        "started from the same tensor",
        """
a = torch.tensor(2.0, requires_grad=True)
b = a + 1
b.backward()
b.backward()  # here
""",
        """
a = torch.tensor(2.0, requires_grad=True)
b = a + 1
b.backward(retain_graph=True)
b.backward()
""",
    ),
    Mistake(
        "loss rebuilt from a number",
        "loss-rebuilt-as-leaf",
        "taken out of the graph by item()",
        LOOP
        + """
loss = F.mse_loss(model(x), y)
loss = torch.tensor(loss.item(), requires_grad=True)  # here
loss.backward()
""",
        LOOP
        + """
scale = torch.tensor(F.mse_loss(model(x), y).item(), requires_grad=True)
(scale * F.mse_loss(model(x), y)).backward()
""",
    ),
    Mistake(
        "loss rebuilt from a list",
        "loss-rebuilt-as-leaf",
        "taken out of the graph by tolist()",
        LOOP
        + """
losses = ((model(x) - y) ** 2).flatten().tolist()
loss = torch.tensor(losses, requires_grad=True)  # here
loss.sum().backward()
loss.backward(torch.ones(8))
""",
        LOOP
        + """
losses = ((model(x) - y) ** 2).flatten()
print(losses.tolist())
losses.mean().backward()
""",
    ),
    Mistake(
        "tensor of tensors",
        "tensor-of-tensors",
        "in the list require grad",
        """
a = torch.tensor(2.0, requires_grad=True)
both = torch.tensor([a * 2, a * 3])  # here
""",
        """
a = torch.tensor(2.0, requires_grad=True)
both = torch.stack([a * 2, a * 3])
logged = torch.tensor([(a * 2).item(), 3.0])
""",
        corrected="both = torch.stack([a * 2, a * 3])",
    ),
    Mistake(
        ".grad of a leaf that does not require grad",
        "grad-without-requires-grad",
        "x.requires_grad is False",
        """
x, w = torch.ones(2), torch.ones(2, requires_grad=True)
(x * w).sum().backward()
print(x.grad)  # here
""",
        """
x, w = torch.ones(2), torch.ones(2, requires_grad=True)
print(x.grad)
(x * w).sum().backward()
for param in nn.Linear(2, 2).requires_grad_(False).parameters():
    assert param.grad is None
""",
    ),
    Mistake(
        "layer cut off by detach",
        "parameters-cut-off",
        "first.weight, first.bias",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        hidden = torch.tanh(self.first(x)).detach()  # here
        return self.second(hidden)

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
""",
        """
model, teacher = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    F.mse_loss(model(torch.ones(2, 3)), teacher(torch.ones(2, 3)).detach()).backward()
    optimizer.step()
""",
    ),
    Mistake(
        "layer cut off by .data",
        "parameters-cut-off",
        "cut off from the loss by .data",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
second(torch.relu(first(torch.ones(2, 3))).data).sum().backward()  # here
optimizer.step()
""",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
second(torch.relu(first(torch.ones(2, 3))).data).sum().backward()
optimizer.step()
""",
    ),
    Mistake(
        "layer cut off by no_grad",
        "parameters-cut-off",
        "under no_grad()",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
with torch.no_grad():
    hidden = first(torch.ones(2, 3))  # here
second(hidden).sum().backward()
optimizer.step()
""",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
with torch.no_grad():
    print(first(torch.ones(2, 3)).mean())
second(first(torch.ones(2, 3))).sum().backward()
optimizer.step()
""",
    ),
    Mistake(
        "layer cut off by NumPy",
        "parameters-cut-off",
        "first.weight",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        hidden = self.first(x).detach().numpy()  # here
        return self.second(torch.from_numpy(hidden))

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 3)).sum().backward()
optimizer.step()
""",
        """
model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
out = model(torch.from_numpy(np.ones((2, 3), np.float32)))
print(out.detach().numpy().mean())
out.sum().backward()
optimizer.step()
""",
    ),
    Mistake(
        "layer whose output NumPy computes on",
        "parameters-cut-off",
        "results of NumPy have no history",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
hidden = torch.from_numpy(np.tanh(first(torch.ones(2, 3)).detach().numpy()))  # here
second(hidden).sum().backward()
optimizer.step()
""",
        """
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
hidden = torch.tanh(first(torch.ones(2, 3)))
print(np.tanh(hidden.detach().numpy()))
second(hidden).sum().backward()
optimizer.step()
""",
    ),
    Mistake(
        "layer that never runs",
        "parameters-cut-off",
        "No recorded op used them",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.first(x)

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 3)).sum().backward()  # here
optimizer.step()
""",
        """
layers = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1)])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    layers[step % 2](torch.ones(2, 3)).sum().backward()
    optimizer.step()
""",
    ),
    Mistake(
        "detached copy made a new leaf",
        "detached-leaf",
        "it got the gradient",
        """
w = torch.ones(3, requires_grad=True)
hidden = (w * 2).detach().requires_grad_()  # here
(hidden ** 2).sum().backward()
print(w.grad)
""",
        """
w = torch.ones(3, requires_grad=True)
hidden = (w * 2).detach().requires_grad_()
(hidden ** 2).sum().backward()
print(hidden.grad)
""",
    ),
    Mistake(
        ".data write to a saved tensor",
        "data-write-to-saved",
        "does not change the version",
        """
w = torch.tensor(3.0, requires_grad=True)
h = w * 1
y = h * h
h.data.fill_(100.0)  # here
y.backward()
""",
        """
w = torch.tensor(3.0, requires_grad=True)
h = w * 1
y = h * h
y.backward()
w.data.fill_(100.0)
h.data.fill_(1.0)
(w * w).backward()
""",
    ),
    Mistake(
        "NumPy write to a saved tensor",
        "array-write-to-saved",
        "its first element was 3, is 100",
        """
w = torch.tensor([3.0], requires_grad=True)
h = w * 1
y = h * h
h.detach().numpy()[0] = 100.0  # here
y.backward()
""",
        """
w = torch.tensor([3.0], requires_grad=True)
h = w * 1
h.detach().numpy()[0] = 100.0
y = h * h
y.backward()
""",
        strict=True,
    ),
    Mistake(
        "write through what detach returned",
        "detached-shares-memory",
        "shares its memory",
        """
w = torch.ones(2, requires_grad=True)
before = w.detach()
before[0] = 9.0  # here
""",
        """
w = torch.ones(2, requires_grad=True)
before = w.detach().clone()
before[0] = 9.0
w.detach().mul_(2)
with torch.no_grad():
    now = w.detach()
    now.clamp_(0, 1)
""",
        corrected="before = w.detach().clone()",
    ),
    Mistake(
        "bare no_grad",
        "bare-no-grad",
        "and discarded",
        """
torch.no_grad()  # here
nn.Linear(2, 2)(torch.ones(2))
""",
        """
off = torch.no_grad()
with off:
    nn.Linear(2, 2)(torch.ones(2))
@torch.no_grad()
def evaluate():
    return nn.Linear(2, 2)(torch.ones(2))
evaluate()
torch.set_grad_enabled(True)
""",
    ),
    Mistake(
        "bare inference_mode",
        "bare-no-grad",
        "inference_mode() was created",
        """
def evaluate():
    torch.inference_mode()  # here
    return nn.Linear(2, 2)(torch.ones(2))
evaluate()
""",
        """
def evaluate():
    with torch.inference_mode():
        return nn.Linear(2, 2)(torch.ones(2))
evaluate()
""",
    ),
    Mistake(
        "requires_grad set on a module",
        "module-requires-grad",
        "2 of its 2 parameters have requires_grad=True",
        """
layer = nn.Linear(2, 2)
layer.requires_grad = False  # here
""",
        """
class Layer(nn.Module):
    def __init__(self, requires_grad):
        super().__init__()
        self.requires_grad = requires_grad
        self.weight = nn.Parameter(torch.ones(2))
Layer(False)
layer = nn.Linear(2, 2)
layer.requires_grad_(False)
layer.weight.requires_grad = True
""",
        corrected="layer.requires_grad_(False)",
    ),
    Mistake(
        "step without gradients",
        "step-without-gradients",
        "cleared them before optimizer.step()",
        LOOP
        + """
for step in range(2):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.zero_grad()  # here
    optimizer.step()
""",
        LOOP
        + """
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss
for step in range(2):
    optimizer.step(closure)
""",
    ),
    Mistake(
        "optimizer holds a replaced parameter",
        "optimizer-holds-replaced",
        "is in no optimizer",
        LOOP
        + """
model.weight = nn.Parameter(torch.ones(1, 3))  # here
model(x).sum().backward()
optimizer.step()
""",
        LOOP
        + """
model.weight = nn.Parameter(torch.ones(1, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(x).sum().backward()
optimizer.step()
""",
    ),
    Mistake(
        "optimizer holds a replaced layer",
        "optimizer-holds-replaced",
        "model.head.weight",
        """
model = nn.Sequential()
model.body, model.head = nn.Linear(3, 4), nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.head = nn.Linear(4, 5)  # here
for step in range(2):
    optimizer.zero_grad()
    model.head(model.body(torch.ones(2, 3))).sum().backward()
    optimizer.step()
""",
        """
model = nn.Sequential()
model.body, model.head = nn.Linear(3, 4), nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.body.parameters(), lr=0.1)
model.head = nn.Linear(4, 5)
optimizer.add_param_group({"params": model.head.parameters()})
for step in range(2):
    optimizer.zero_grad()
    model.head(model.body(torch.ones(2, 3))).sum().backward()
    optimizer.step()
""",
    ),
    Mistake(
        "update that loses requires_grad",
        "parameter-rebound-in-no-grad",
        "under no_grad()",
        """
w = torch.ones(2, requires_grad=True)
(w * w).sum().backward()
with torch.no_grad():
    w = w - 0.1 * w.grad
(w * w).sum().backward()  # here
""",
        """
w = torch.ones(2, requires_grad=True)
for step in range(2):
    (w * w).sum().backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad
    w.requires_grad_()
print((w * w).sum())
""",
        corrected="w -= 0.1 * w.grad",
    ),
    Mistake(
        "weights tied through .data",
        "tied-through-data",
        "over the same memory",
        """
one, other = nn.Linear(2, 2), nn.Linear(2, 2)
other.weight.data = one.weight.data  # here
(one(torch.ones(1, 2)) + other(torch.ones(1, 2))).sum().backward()
""",
        """
one, other = nn.Linear(2, 2), nn.Linear(2, 2)
other.weight.data = one.weight.data.clone()
other.bias = one.bias
(one(torch.ones(1, 2)) + other(torch.ones(1, 2))).sum().backward()
""",
        corrected="other.weight = one.weight",
    ),
    Mistake(
        "total += loss",
        "total-loss-keeps-graphs",
        "ran 5 times",
        LOOP
        + """
total = 0
for step in range(5):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss  # here
""",
        LOOP
        + """
total = 0
for step in range(5):
    total += F.mse_loss(model(x), y)
(total / 5).backward()
mean = 0.0
for step in range(5):
    mean += F.mse_loss(model(x), y).item()
value = torch.ones((), requires_grad=True)
for step in range(5):
    value = value + 0.1 * torch.sin(value)
""",
        corrected="total += loss.item()",
    ),
    Mistake(
        "logarithm of 0 in the branch not taken",
        "nan-gradient",
        "discarded",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.where(x > 0, torch.log(x), x)  # here
y.sum().backward()
""",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
safe = torch.where(x > 0, x, torch.ones(()))
y = torch.where(x > 0, torch.log(safe), x)
y.sum().backward()
""",
    ),
    Mistake(
        "length of a zero vector",
        "nan-gradient",
        "sqrt of 0",
        """
x = torch.zeros(3, requires_grad=True)
length = torch.sqrt((x ** 2).sum())  # here
length.backward()
""",
        """
x = torch.zeros(3, requires_grad=True)
length = torch.sqrt((x ** 2).sum() + 1e-12)
length.backward()
""",
    ),
    Mistake(
        "infinite slope",
        "infinite-gradient",
        "sqrt of 0 at [1]",
        """
x = torch.tensor([1.0, 0.0], requires_grad=True)
y = torch.sqrt(x)  # here
y.sum().backward()
""",
        """
x = torch.tensor([1.0, 0.0], requires_grad=True)
print(torch.sqrt(x))
torch.sqrt(x[:1]).sum().backward()
""",
    ),
    Mistake(
        "NaN of the forward",
        "nan-in-forward",
        "log of -1",
        """
x = torch.tensor([-1.0, 1.0], requires_grad=True)
y = torch.log(x)  # here
print(y)
""",
        """
x = torch.tensor([-1.0, 1.0], requires_grad=True)
y = torch.log(x)
y[1:].sum().backward()
z = torch.nan_to_num(torch.sqrt(x))
""",
    ),
    Mistake(
        "NaN of an overflow",
        "nan-in-forward",
        "exp of 100",
        """
x = torch.tensor([100.0, 1.0], requires_grad=True)
e = torch.exp(x)  # here
loss = (e / e.sum()).log().sum()
loss.backward()
""",
        """
x = torch.tensor([100.0, 1.0], requires_grad=True)
torch.log_softmax(x, 0).sum().backward()
""",
    ),
    Mistake(
        "infinite loss",
        "infinite-loss",
        "log of 0",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
loss = -torch.log(x).sum()  # here
loss.backward()
""",
        """
x = torch.tensor([0.0, 1.0], requires_grad=True)
loss = torch.exp(torch.log(x)).sum()
scores = torch.tensor([1.0, 2.0], requires_grad=True) + torch.tensor([0.0, float("-inf")])
torch.softmax(scores, 0)[0].backward()
""",
    ),
    Mistake(
        "cross entropy of probabilities",
        "loss-of-probabilities",
        "of the output of softmax",
        """
model = nn.Sequential(nn.Linear(3, 4), nn.Softmax(dim=1))
F.cross_entropy(model(torch.ones(2, 3)), torch.tensor([0, 1])).backward()  # here
""",
        """
model = nn.Linear(3, 4)
scores = model(torch.ones(2, 3))
print(torch.softmax(scores, 1))
F.cross_entropy(scores, torch.tensor([0, 1])).backward()
F.cross_entropy(model(torch.ones(2, 3)), torch.softmax(torch.ones(2, 4), 1)).backward()
F.nll_loss(torch.log_softmax(model(torch.ones(2, 3)), 1), torch.tensor([0, 1])).backward()
""",
    ),
    Mistake(
        "sigmoid before a loss of logits",
        "loss-of-probabilities",
        "of the output of sigmoid",
        """
scores = nn.Linear(3, 1)(torch.ones(2, 3))
F.binary_cross_entropy_with_logits(torch.sigmoid(scores), torch.ones(2, 1)).backward()  # here
""",
        """
chance = torch.sigmoid(nn.Linear(3, 1)(torch.ones(2, 3)))
F.binary_cross_entropy(chance, torch.ones(2, 1)).backward()
""",
        corrected="F.binary_cross_entropy_with_logits(scores, torch.ones(2, 1)).backward()  # here",
    ),
    Mistake(
        "difference of a column and a row",
        "loss-broadcasts",
        "their difference has shape (8, 8)",
        LOOP
        + """
loss = ((model(x) - y[:, 0]) ** 2).mean()  # here
loss.backward()
""",
        LOOP
        + """
loss = ((model(x)[:, 0] - y[:, 0]) ** 2).mean()
loss.backward()
scores = model(x)[:, 0]
pairs = (scores.unsqueeze(1) - scores) ** 2
""",
    ),
    Mistake(
        "layers in a plain list",
        "layers-in-plain-list",
        "is a list with 2 layers, 4 parameters",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]  # here
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
""",
        """
class Model(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)
        self.layers = [self.body, self.head]
        self.teacher = [teacher]

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher[0](x)
        for layer in self.layers:
            x = layer(x)
        return x - wanted

model = Model(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
""",
        corrected="self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])",
    ),
    Mistake(
        "train() forgotten after eval()",
        "train-mode-forgotten",
        "2 step(s) in train mode, then 4 in eval mode",
        """
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for step in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()  # here
    model.eval()
    with torch.no_grad():
        model(torch.ones(2, 3))
""",
        """
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for step in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.ones(2, 3))
""",
    ),
    Mistake(
        "dead relu",
        "dead-relu",
        "only zeros in all of its 25 calls",
        """
body, head = nn.Linear(3, 8), nn.Linear(8, 1)
with torch.no_grad():
    body.bias.fill_(-100.0)
for step in range(25):
    head(torch.relu(body(torch.rand(4, 3)))).sum().backward()  # here
    body.zero_grad(); head.zero_grad()
""",
        """
body, head = nn.Linear(3, 8), nn.Linear(8, 1)
for step in range(25):
    with torch.no_grad():
        body.bias.fill_(-100.0 if step < 20 else 0.0)
    head(torch.relu(body(torch.rand(4, 3)))).sum().backward()
    body.zero_grad(); head.zero_grad()
""",
    ),
    Mistake(
        "exploding gradient",
        "exploding-gradient",
        "backwards in a row",
        """
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=20.0)
for step in range(8):
    optimizer.zero_grad()
    (w ** 2).sum().backward()  # here
    optimizer.step()
""",
        """
w = torch.full((2,), 1e9).requires_grad_()
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    (w ** 2).sum().backward()
    optimizer.step()
""",
    ),
    Mistake(
        "unpack hook of another shape",
        "unpack-changed-tensor",
        "unpacked by the hooks",
        """
a = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):  # here
    b = a * a
b.sum().backward()
""",
        """
a = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), torch.from_numpy):
    b = a * a
b.sum().backward()
""",
    ),
)

NOTES = (  # (slug, program with `# here`): legal, reported only when asked for
    (
        "zero-grad-sets-none",
        LOOP + "model(x).sum().backward()\noptimizer.zero_grad()\nprint(model.weight.grad)  # here\n",
    ),
    ("tolist-requires-grad", "print(torch.ones(2, requires_grad=True).tolist())  # here\n"),
    (
        "backward-in-no-grad",
        "a = torch.ones(1, requires_grad=True) * 2\nwith torch.no_grad():\n    a.backward()  # here\n",
    ),
    ("eval-records", "model = nn.Linear(2, 1).eval()\nmodel(torch.ones(1, 2))  # here\n"),
    ("leaf-made-in-no-grad", "with torch.no_grad():\n    x = torch.ones(2, requires_grad=True)  # here\n"),
    (
        "no-grad-decorator-without-parentheses",
        "@torch.no_grad  # here\ndef double(x):\n    return x * 2\ndouble(torch.ones(1))\n",
    ),
)
