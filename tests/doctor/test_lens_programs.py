"""Rules about what whole programs do: programs of other domains that make the mistake, and near misses that do not."""

import pytest
from under_the_doctor import ENGINES, findings_of

BOTH = pytest.mark.parametrize("engine", ENGINES)
STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SGD = "optimizer = torch.optim.SGD({}, lr=0.01)\n"
WRONG = {
    "a batch norm of images, frozen where it was trained": ("BLA23", 4, """
body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten())
net = nn.Sequential(body, nn.Linear(32, 2))
for phase in range(2):
    net.train()
    body.requires_grad_(phase == 0)
    optimizer = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], lr=0.01)
    for step in range(8):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(8, 1, 6, 6)), torch.randint(0, 2, (8,))).backward()
        optimizer.step()
"""),
    "an autoregressive flow by its distribution": ("BLA24", 7, f"""
net = nn.Linear(1, 2)
{SGD.format("net.parameters()")}for step in range(3):
    x = torch.randn(16, 2)
    m, s = net(x[:, :1]).unbind(1)
    u = (x[:, 1] - m) * torch.exp(-s)
    loss = -(torch.distributions.Normal(0.0, 1.0).log_prob(u) + s).mean() + net.weight.square().sum()""" + STEP),
    "an error with a width of its own": ("BLA24", 5, f"""
head = nn.Linear(3, 2)
{SGD.format("head.parameters()")}for step in range(3):
    mu, log_var = head(torch.randn(16, 3)).unbind(1)
    loss = (0.5 * (1 - mu) ** 2 * torch.exp(-log_var) - 0.5 * log_var).mean()""" + STEP),
    "a caption whose state is cut at each word": ("BLA25", 8, f"""
image, words, cell, out = nn.Linear(6, 8), nn.Embedding(5, 4), nn.GRUCell(4, 8), nn.Linear(8, 5)
{SGD.format("[*image.parameters(), *words.parameters(), *cell.parameters(), *out.parameters()]")}for step in range(3):
    h, text = torch.tanh(image(torch.randn(8, 6))), torch.randint(0, 5, (8, 6))
    loss = F.cross_entropy(out(h), text[:, 0])
    for t in range(5):
        x = words(text[:, t])
        h = cell(x, h.detach())
        loss = loss + F.cross_entropy(out(h), text[:, t + 1])""" + STEP),
    "a signal that is turned round without its labels": ("BLA26", 6, f"""
from torch.utils.data import DataLoader, TensorDataset
net = nn.Conv1d(2, 3, 3, padding=1)
{SGD.format("net.parameters()")}data = TensorDataset(torch.randn(32, 2, 12), torch.randint(0, 3, (32, 12)))
for step, (x, y) in enumerate(DataLoader(data, batch_size=8)):
    x = torch.flip(x, dims=[2]) if step % 2 else x
    loss = F.cross_entropy(net(x), y)""" + STEP),
    "a regression whose parts are summed under masks": ("BLA27", 8, f"""
x, y, net = torch.randn(50, 4), torch.randn(50), nn.Linear(4, 1)
order, train = torch.randperm(50), torch.zeros(50)
train[order[:30]] = 1.0
test = 1 - train
{SGD.format("net.parameters()")}for step in range(4):
    pred = net(x).squeeze(1)
    loss = F.mse_loss(pred, y)
    error = (pred.detach() - y).square()
    print((error * train).sum() / 30, (error * test).sum() / 20)""" + STEP),
    "a second derivative that is a constant": ("BL607", 6, f"""
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
{SGD.format("net.parameters()")}for step in range(2):
    p = torch.rand(16, 2, requires_grad=True)
    d = torch.autograd.grad(net(p).sum(), p, create_graph=True)[0]
    d2 = torch.autograd.grad(d[:, 0].sum(), p, retain_graph=True)[0]
    loss = (d[:, 1] - 0.1 * d2[:, 0]).pow(2).mean()""" + STEP),
    "a decoder that reads its own target": ("BL792", 6, f"""
words, encoder, decoder, out = nn.Embedding(9, 8), nn.GRU(8, 8), nn.GRU(8, 8), nn.Linear(8, 9)
{SGD.format("[*nn.ModuleList([words, encoder, decoder, out]).parameters()]")}for step in range(4):
    source, target = torch.randint(0, 9, (5, 8)), torch.randint(0, 9, (6, 8))
    h = decoder(words(target), encoder(words(source))[1])[0]
    loss = F.cross_entropy(out(h).flatten(0, 1), target.flatten())""" + STEP),
    "weights of a sum over other rows": ("BLA22", 6, f"""
query, key, value = nn.Parameter(torch.randn(3, 1)), nn.Linear(4, 3), nn.Linear(4, 6)
{SGD.format("[query, *key.parameters(), *value.parameters()]")}for step in range(4):
    x = torch.randn(8, 5, 4)
    scores = key(x) @ query
    weights = torch.softmax(scores, dim=2)
    loss = (weights * value(x)).sum(dim=1).square().mean()""" + STEP),
}  # fmt: skip
MEANT = {
    "a model of one expert, and a memory of one item": f"""
gate, experts, key = nn.Linear(4, 1), nn.ModuleList([nn.Linear(4, 3)]), nn.Linear(4, 3)
{SGD.format("[*gate.parameters(), *experts.parameters(), *key.parameters()]")}for step in range(5):
    x, memory = torch.randn(8, 4), torch.randn(8, 1, 3)
    mixed = (F.softmax(gate(x), 1).unsqueeze(2) * torch.stack([one(x) for one in experts], 1)).sum(1)
    read = (key(x).unsqueeze(1) @ memory.transpose(1, 2)).softmax(2) @ memory
    loss = (mixed + read.squeeze(1) - 1).square().mean()""" + STEP,
    "a scaling that the first layer takes into itself": f"""
data = torch.randn(64, 2) * 4 + 30
mean, std, net = data.mean(0), data.std(0), nn.Linear(2, 1)
{SGD.format("net.parameters()")}for step in range(8):
    loss = (net((data - mean) / std) - 1).square().mean()""" + STEP + """
with torch.no_grad():
    net.bias -= net.weight @ (mean / std)
    net.weight /= std
    net(data)
""",
    "layers that learn one by one": f"""
blocks, head = nn.ModuleList(nn.Linear(6, 6) for _ in range(6)), nn.Linear(6, 2)
{SGD.format("[*blocks.parameters(), *head.parameters()]")}for step in range(3):
    h, loss = torch.randn(8, 6), 0.0
    for block in blocks:
        h = torch.relu(block(h.detach()))
        loss = loss + F.cross_entropy(head(h), torch.randint(0, 2, (8,)))""" + STEP,
    "proposals that are refined, and rollouts from data": f"""
features, first, update = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(10, 2)
{SGD.format("[*features.parameters(), *first.parameters(), *update.parameters()]")}for step in range(3):
    f = torch.relu(features(torch.randn(8, 6)))
    coords, state = first(f), torch.randn(8, 2)
    loss = (coords - 1).square().mean()
    for t in range(5):
        coords = coords.detach() + update(torch.cat([f, coords.detach()], 1))
        state = update(torch.cat([f.detach(), state.detach()], 1))
        loss = loss + (coords - 1).square().mean() + (state - 1).square().mean()""" + STEP,
    "random features that are normalised as they are": f"""
body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).requires_grad_(False)
model = nn.Sequential(body, nn.Linear(8, 2))
{SGD.format("model[1].parameters()")}for step in range(8):
    loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,)))""" + STEP,
    "a target network that follows by averages": f"""
online = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
both = nn.ModuleDict({{"online": online, "target": copy.deepcopy(online).requires_grad_(False)}})
both.forward = lambda a, b: F.mse_loss(both["online"](a), both["target"](b).detach())
{SGD.format("online.parameters()")}for step in range(8):
    x = torch.randn(8, 4)
    loss = both(x, x + 0.1)""" + STEP + """    with torch.no_grad():
        for slow, fast in zip(both["target"].parameters(), online.parameters()):
            slow.lerp_(fast, 0.1)
""",
    "scales with their signs, and outliers that are to be unlikely": f"""
net, other = nn.Linear(1, 2), nn.Linear(3, 2)
{SGD.format("[*net.parameters(), *other.parameters()]")}def log_prob(x):
    s, t = net(x[:, :1]).chunk(2, 1)
    return (-0.5 * (x[:, 1:] * s.exp() + t) ** 2 + s).mean()
for step in range(3):
    mu, s = other(torch.randn(16, 3)).unbind(1)
    nll = (0.5 * ((1 - mu) / s.exp()) ** 2 + s).mean() + (0.5 * (1 - mu) ** 2 * torch.exp(-s) + 0.5 * s).mean()
    loss = -log_prob(torch.randn(16, 2)) + 0.1 * log_prob(torch.randn(16, 2) * 4) + nll""" + STEP,
    "a divergence of log-ratios": f"""
net = nn.Linear(3, 2)
{SGD.format("net.parameters()")}for step in range(3):
    x, advantage = torch.randn(16, 3), torch.randn(16)
    log_ratio = F.log_softmax(net(x), 1)[:, 0] - F.log_softmax(net(x).detach() * 0.9, 1)[:, 0]
    loss = -(log_ratio.exp() * advantage).mean() + 0.1 * log_ratio.mean()""" + STEP,
    "images that are turned together, and predictions that are turned back": f"""
images, masks = torch.randn(24, 1, 8, 8), (torch.randn(24, 1, 8, 8) > 0).float()
net = nn.Conv2d(1, 1, 3, padding=1)
{SGD.format("net.parameters()")}for step in range(16):
    index = torch.randint(0, 24, (4,))
    x, y = images[index], masks[index]
    if step % 2:
        loss = F.binary_cross_entropy_with_logits(net(x.flip(-1)).flip(-1), y)
    else:
        x, y = x.rot90(step, (2, 3)), y.rot90(step, (2, 3))
        loss = F.binary_cross_entropy_with_logits(net(x * 1.1), y)""" + STEP,
    "groups of rows, and a sample of those that are trained on": f"""
x, y, group, net = torch.randn(40, 4), torch.randint(0, 3, (40,)), torch.randint(0, 2, (40,)), nn.Linear(4, 3)
order = torch.randperm(40)
{SGD.format("net.parameters()")}for step in range(4):
    out = net(x)
    loss = F.cross_entropy(out, y)
    hit = (out.argmax(1) == y).float()
    print(hit[group == 0].mean(), hit[group == 1].mean(), hit[order[:10]].mean())""" + STEP,
    "a latent that is moved along its gradient, and synthetic gradients": f"""
encoder, decoder, guess = nn.Linear(4, 3), nn.Linear(3, 4), nn.Linear(3, 3)
{SGD.format("[*encoder.parameters(), *decoder.parameters(), *guess.parameters()]")}for step in range(3):
    x = torch.randn(8, 4)
    z = encoder(x)
    loss = (decoder(z) - x).square().mean()
    g = torch.autograd.grad(loss, z, retain_graph=True)[0]
    moved = z - 0.1 * g
    loss = (decoder(moved) - x).square().mean() + moved.square().mean() + (guess(z) - g).pow(2).mean()""" + STEP,
    "a sentence that goes through one vector, its words dropped": f"""
words, read, encoder, decoder, out = nn.Embedding(9, 8), nn.Embedding(9, 8), nn.GRU(8, 8), nn.GRU(8, 8), nn.Linear(8, 9)
parts = [*words.parameters(), *read.parameters(), *encoder.parameters(), *decoder.parameters(), *out.parameters()]
{SGD.format("parts")}for step in range(8):
    text = torch.randint(2, 9, (6, 8))
    seen = torch.cat([torch.zeros(1, 8, dtype=torch.long), text[:-1]])
    seen = torch.ones_like(text) if step < 4 else torch.where(torch.rand(6, 8) < 0.8, torch.ones_like(text), seen)
    h = decoder(read(seen), encoder(words(text))[1])[0]
    loss = F.cross_entropy(out(h).flatten(0, 1), text.flatten())""" + STEP,
}  # fmt: skip


@BOTH
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRONG)
def test_the_mistake_is_found_at_its_line(name, engine):
    rule, line, program = WRONG[name]
    assert [(one.rule, one.place.line) for one in findings_of(program.lstrip(), engine)] == [(rule, line)]


@BOTH
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MEANT)
def test_a_near_miss_is_left_alone(name, engine):
    assert findings_of(MEANT[name].lstrip(), engine) == []


@BOTH
def test_an_entropy_is_named_where_the_loss_adds_it(engine):
    source = """model = nn.Linear(4, 3)
for step in range(3):
    policy = torch.distributions.Categorical(logits=model(torch.randn(8, 4)))
    entropy = policy.entropy().mean()
    scored = policy.log_prob(policy.sample()).mean()
    loss = -scored + 0.01 * entropy
    loss.backward()
    model.zero_grad()
"""
    (found,) = findings_of(source, engine)
    assert (found.rule, found.place.line) == ("BLA19", 6)
