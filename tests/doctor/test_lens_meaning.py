"""Mistakes with splits, draws, states, scores and scales: forms that the rules' own programs lack, and near misses."""

import pytest
from under_the_doctor import ENGINES, findings_of

STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# a rule, a program, what stands at `HERE` in the wrong one and in the right one
FORMS = {
    "pieces of a series in no order": (
        "BLA28",
        f"""
series = torch.randn(400, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head, self.state = nn.LSTM(2, 8), nn.Linear(8, 2), None
    def forward(self, x):
        out, state = self.layer(x.unsqueeze(1), self.state)
        self.state = tuple(one.detach() for one in state)
        return self.head(out).squeeze(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in HERE:
    loss = (model(series[i * 20 : i * 20 + 20]) - series[i * 20 + 1 : i * 20 + 21]).pow(2).mean()
{STEP}""",
        "[3, 11, 2, 9, 17, 1, 8, 0, 5, 12, 4, 16, 7]",
        "range(13)",
    ),
    "a state carried through the pieces of a shuffled batch, or through batches": (
        "BLA28",
        """
from torch.utils.data import DataLoader, TensorDataset
layer, state = nn.GRU(2, 4, batch_first=True), None
for (x,) in DataLoader(TensorDataset(torch.randn(24, 12, 2)), batch_size=4, shuffle=True):
    HERE
    for piece in x.split(6, dim=1):
        out, state = layer(piece, state)
        out.square().mean().backward()
        state = state.detach()
        layer.zero_grad()
""",
        "pass",
        "state = None",
    ),
    "a generator of NumPy that begins anew": (
        "BLA11",
        f"""
data, model = torch.randn(256, 6), nn.Linear(6, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rng = np.random.default_rng(42)
def jitter(x):
    HERE
    return x + torch.from_numpy(rng.normal(size=tuple(x.shape)).astype(np.float32))
for rows in data.split(32):
    loss = (model(jitter(rows)) - rows).square().mean()
{STEP}""",
        "rng = np.random.default_rng(42)",
        "pass",
    ),
    "a batch that is drawn by the same seed": (
        "BLA11",
        f"""
x, model = torch.randn(300, 5), nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = torch.Generator()
def batch(seed=3):
    generator = HERE
    return x[torch.randint(0, 300, (16,), generator=generator)]
for step in range(8):
    rows = batch()
    loss = (model(rows) - 2 * rows[:, :1]).square().mean()
{STEP}""",
        "torch.Generator().manual_seed(seed)",
        "kept",
    ),
    "crops drawn apart": (
        "BLA26",
        f"""
images, model = torch.randn(24, 3, 24, 24), nn.Conv2d(3, 1, 3, padding=1)
masks = (images.mean(1, keepdim=True) > 0).float()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def crop(image, at=None):
    i, j = at or torch.randint(0, 9, (2,)).tolist()
    return image[..., i : i + 16, j : j + 16]
for numbers in torch.arange(24).split(4):
    places = [torch.randint(0, 9, (2,)).tolist() for _ in numbers]
    x = torch.stack([crop(images[n], at) for n, at in zip(numbers, places)])
    y = torch.stack([crop(masks[n], HERE) for n, at in zip(numbers, places)])
    loss = F.binary_cross_entropy_with_logits(model(x), y)
{STEP}""",
        "None",
        "at",
    ),
    "flips drawn apart, of images that no tensor held": (
        "BLA26",
        f"""
scenes = [(torch.randn(1, 8, 8), (torch.randn(1, 8, 8) > 0).float()) for _ in range(24)]
model = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def turned(image, chance):
    return image.flip(2) if chance < 0.5 else image
for start in range(0, 24, 4):
    rows = []
    for image, mask in scenes[start : start + 4]:
        chance = torch.rand(1).item()
        rows.append((turned(image, chance), turned(mask, HERE)))
    x, y = torch.stack([image for image, _ in rows]), torch.stack([mask for _, mask in rows])
    loss = F.binary_cross_entropy_with_logits(model(x), y)
{STEP}""",
        "torch.rand(1).item()",
        "chance",
    ),
    "edges as a list": (
        "BLA29",
        f"""
edges = torch.triu(torch.rand(60, 60) < 0.15, 1).nonzero().t()
edges = edges[:, torch.randperm(edges.shape[1])]
count = edges.shape[1] * 4 // 5
train, test, none = edges[:, :count], edges[:, count:], torch.randint(0, 60, (2, 40))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.other = nn.Linear(8, 16), nn.Linear(8, 16)
    def forward(self, x, pairs):
        source, target = torch.cat([pairs[0], pairs[1]]), torch.cat([pairs[1], pairs[0]])
        h = self.other(x)
        return self.own(x) + torch.zeros_like(h).index_add(0, target, h[source])
x, model = torch.randn(60, 8), Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def score(z, pairs):
    return (z[pairs[0]] * z[pairs[1]]).sum(-1)
for step in range(4):
    z = model(x, HERE)
    drawn = torch.randint(0, 60, train.shape)
    loss = F.softplus(-score(z, train)).mean() + F.softplus(score(z, drawn)).mean()
{STEP}
    with torch.no_grad():
        z = model(x, HERE)
        print((score(z, test).mean() - score(z, none).mean()).item())
""",
        "edges",
        "train",
    ),
    "ids to embed are drawn from 0": (
        "BL730",
        f"""
users, items = nn.Embedding(20, 8), nn.Embedding(30, 8, padding_idx=0)
optimizer = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.1)
for step in range(20):
    rows, liked = users(torch.randint(20, (32,))), torch.arange(32) % 29 + 1
    others = torch.randint(HERE, 30, (32, 1))
    scores = (rows[:, None] * items(torch.cat([liked[:, None], others], dim=1))).sum(-1)
    loss = -F.logsigmoid(scores[:, 0] - scores[:, 1]).mean()
{STEP}""",
        "0",
        "1",
    ),
    "a class to predict is the padding": (
        "BL730",
        f"""
table, layer, head = nn.Embedding(40, 8, padding_idx=0), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 40)
optimizer = torch.optim.SGD([*table.parameters(), *layer.parameters(), *head.parameters()], lr=0.1)
for step in range(6):
    rows = torch.randint(1, 40, (16, 6))
    for number in range(16):
        rows[number, : number % 4] = 0
    liked = torch.arange(16) % 5 + HERE
    loss = F.cross_entropy(head(layer(table(rows))[1][-1]), liked)
{STEP}""",
        "0",
        "1",
    ),
    "padded vectors, a convolution, time first": (
        "BLA14",
        f"""
from torch.nn.utils.rnn import pad_sequence
convolution, layer, head = nn.Conv1d(5, 8, 3, padding=1), nn.LSTM(8, 8), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*convolution.parameters(), *layer.parameters(), *head.parameters()], lr=0.1)
for step in range(5):
    lengths = torch.arange(10) % 7 + 4
    x = pad_sequence([torch.randn(int(length), 5) for length in lengths])
    out, (state, _) = layer(convolution(x.permute(1, 2, 0)).relu().permute(2, 0, 1))
    loss = F.cross_entropy(head(HERE), torch.arange(10) % 2)
{STEP}""",
        "state[-1]",
        "out[lengths - 1, torch.arange(10)]",
    ),
    "a log-determinant that is a mean over all": (
        "BLA31",
        f"""
net = nn.Linear(2, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    a, b = torch.randn(64, 2), torch.randn(64, 2)
    shift, scale = net(a).chunk(2, -1)
    scale = scale.tanh()
    z = torch.cat([a, (b - shift) * torch.exp(-scale)], -1)
    loss = (0.5 * z.pow(2).sum(-1)).mean() + HERE
{STEP}""",
        "scale.mean()",
        "scale.sum(-1).mean()",
    ),
    "a deviation by its logarithm": (
        "BLA34",
        f"""
encoder, decoder = nn.Linear(10, 6), nn.Linear(3, 10)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=1e-4)
for step in range(4):
    x = torch.randn(32, 10)
    mean, log_std = encoder(x).chunk(2, 1)
    z = mean + torch.randn_like(mean) * torch.exp(HERE)
    divergence = 0.5 * torch.mean(torch.sum(mean**2 + torch.exp(2 * log_std) - 2 * log_std - 1, dim=1))
    loss = F.mse_loss(decoder(z), x, reduction="sum") / 32 + divergence
{STEP}""",
        "2 * log_std",
        "log_std",
    ),
    "two permutations": (
        "BLA35",
        f"""
x, model = torch.randn(200, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
order = torch.randperm(200)
train, test = order[:150], HERE[150:]
for epoch in range(4):
    for rows in train.split(50):
        loss = (model(x[rows]) - x[rows, :1]).square().mean()
{STEP.replace("    ", "        ")}
    with torch.no_grad():
        print(model(x[test]).mean().item(), model(x[train[:40]]).mean().item(), model(x).mean().item())
""",
        "torch.randperm(200)",
        "order",
    ),
    "heads, a small number for masked scores, queries times the root": (
        "BLA32",
        f"""
project = nn.Linear(32, 96)
optimizer = torch.optim.SGD(project.parameters(), lr=0.01)
seen = torch.arange(7)[None] < torch.tensor([7, 5, 4, 6])[:, None]
for step in range(4):
    q, k, v = project(torch.randn(4, 7, 32)).view(4, 7, 3, 4, 8).permute(2, 0, 3, 1, 4)
    scores = (q * 8**-0.5) @ k.transpose(-2, -1)
    scores = scores.masked_fill(~seen[:, None, None, :], HERE)
    loss = (scores.softmax(-1) @ v).square().mean()
{STEP}""",
        "1e-9",
        "-1e9",
    ),
    "probabilities for gumbel_softmax": (
        "BLA38",
        f"""
encoder, decoder = nn.Linear(4, 5), nn.Linear(5, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for step in range(4):
    x = torch.randn(16, 4)
    loss = F.mse_loss(decoder(F.gumbel_softmax(HERE, tau=0.5)), x)
{STEP}""",
        "encoder(x).softmax(dim=1)",
        "encoder(x)",
    ),
}
SPLITS = """
groups, label = np.arange(40) % 5, np.arange(40.0) % 3
class Means:
    def fit(self, groups, target):
        self.table = np.bincount(groups, target, 5) / np.bincount(groups, minlength=5).clip(1)
        return self
    def transform(self, groups):
        return self.table[groups]
def main():
    order = np.random.default_rng(0).permutation(40)
    train_rows, test_rows = order[:30], order[30:]
    coder = Means()
    coder.fit(HERE)
    x = torch.tensor(coder.transform(groups), dtype=torch.float32)[:, None]
    target = torch.tensor(label, dtype=torch.float32)[:, None]
    model = nn.Linear(1, 1)
    for step in range(3):
        F.mse_loss(model(x[train_rows]), target[train_rows]).backward()
        model.zero_grad()
    print(F.mse_loss(model(x[test_rows]), target[test_rows]).item())
main()
"""
FORMS["means of all rows' labels, in a function"] = (
    "BLA30",
    SPLITS,
    "groups, label",
    "groups[train_rows], label[train_rows]",
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_found_and_its_near_miss_is_not(name: str, engine: str):
    rule, program, wrong, right = FORMS[name]
    assert [one.rule for one in findings_of(program.replace("HERE", wrong), engine)] == [rule]
    assert findings_of(program.replace("HERE", right), engine) == []


RIGHT = {
    "features by a seed, rows by their own seeds, the same noise in each evaluation, the same order in each epoch": f"""
x = torch.randn(96, 5)
class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, number):
        return x[number] + 0.1 * torch.randn(5, generator=torch.Generator().manual_seed(number))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def features(rows):
    return rows @ torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
for epoch in range(6):
    for rows in torch.utils.data.DataLoader(Noisy(), batch_size=16):
        loss = model(features(rows)).square().mean()
{STEP.replace("    ", "        ")}
    with torch.no_grad():
        model(features(x[:16] + torch.randn(16, 5, generator=torch.Generator().manual_seed(0))))
    for rows in torch.randperm(96, generator=torch.Generator().manual_seed(0)).split(48):
        loss = model(features(x[rows])).square().mean()
{STEP.replace("    ", "        ")}
""",
    "folds with models of their own": f"""
x = torch.randn(120, 6)
for fold in range(3):
    order, model = torch.randperm(120), nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for rows in order[:90].split(30):
            loss = (model(x[rows]) - x[rows, :1]).square().mean()
{STEP.replace("    ", "            ")}
        with torch.no_grad():
            print(model(x[order[90:]]).mean().item())
""",
    "cosines with a large scale, a sparse attention by zeros": f"""
project = nn.Linear(16, 48)
optimizer = torch.optim.SGD(project.parameters(), lr=0.01)
chosen = torch.rand(6, 6) > 0.5
for step in range(4):
    q, k, v = project(torch.randn(3, 6, 16)).chunk(3, dim=-1)
    cosines = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(1, 2)
    plain = (q @ k.transpose(1, 2) / 4).masked_fill(~chosen, 0.0)
    loss = ((cosines * 4.0).softmax(-1) @ v).square().mean() + (plain.softmax(-1) @ v).square().mean()
{STEP}""",
    "weights of the divergence that are a choice": f"""
encoder, decoder = nn.Linear(10, 6), nn.Linear(3, 10)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for step in range(4):
    x = torch.randn(32, 10)
    mean, log_variance = encoder(x).chunk(2, 1)
    out = decoder(mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance))
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
    loss = 0.5 * ((out - x) ** 2).sum(1).mean() + divergence
{STEP}""",
    "a discriminator with turned labels": f"""
generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
steps = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (generator, critic)]
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for step in range(5):
    samples = generator(torch.randn(8, 2))
    loss = F.binary_cross_entropy_with_logits(critic(torch.randn(8, 2)), zeros)
    loss = loss + F.binary_cross_entropy_with_logits(critic(samples.detach()), ones)
    optimizer = steps[1]
{STEP}
    loss = F.binary_cross_entropy_with_logits(critic(samples), zeros)
    optimizer = steps[0]
{STEP}""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_meant_ends_in_no_finding(name: str, engine: str):
    assert findings_of(RIGHT[name], engine) == []
