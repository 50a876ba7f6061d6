"""What looks like a mistake and is meant: the doctor leaves it alone."""

import pytest
from under_the_doctor import findings_of

STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SGD = "optimizer = torch.optim.SGD(model.parameters(), lr=0.05)\n"
TOWERS = f"""
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
shared, query = model
{SGD}"""
MEANT = {
    "a triplet whose query has a head of its own": TOWERS
    + """
for step in range(6):
    a, b, c = torch.randn(3, 16, 8)
    a, b, c = query(shared(a)), shared(b), shared(c)
    loss = F.relu(0.3 - F.cosine_similarity(a, b) + F.cosine_similarity(a, c)).mean()"""
    + STEP,
    "a similarity with a label": TOWERS
    + """
for step in range(6):
    a, b = torch.randn(2, 16, 8)
    loss = F.mse_loss(F.cosine_similarity(query(shared(a)), shared(b)), torch.rand(16))"""
    + STEP,
    "layers that are kept apart": TOWERS
    + """
for step in range(6):
    h = shared(torch.randn(16, 8))
    g = query(h)
    loss = F.cross_entropy(g, torch.randint(0, 8, (16,))) + 0.1 * F.cosine_similarity(g, h).abs().mean()"""
    + STEP,
    "a forecast of the next row": f"""
features = torch.randn(200, 4)
price = features.sum(1).roll(1)
model = nn.Linear(4, 1)
{SGD}
for step in range(6):
    index = torch.randint(0, 199, (32,))
    loss = F.mse_loss(model(features[index]).squeeze(1), price[index + 1])"""
    + STEP,
    "padding with an embedding of its own": f"""
model = nn.ModuleList([nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 3)])
{SGD}
for step in range(4):
    lengths, tokens = torch.randint(2, 6, (8,)), torch.randint(1, 20, (8, 6))
    padding = (torch.arange(6)[None] >= lengths[:, None]).float().unsqueeze(-1)
    x = model[0](tokens) * (1 - padding) + model[1].bias * padding
    loss = F.cross_entropy(model[2](model[1](x).mean(1)), torch.randint(0, 3, (8,)))"""
    + STEP,
    "a norm of many arguments": f"""
def scaled(x, gamma, beta, eps, d):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) * gamma + beta
model = nn.Linear(8, 8)
{SGD}
for step in range(3):
    loss = scaled(torch.randn(4, 8), model.weight[0], model.bias, 1e-5, 8).square().mean()"""
    + STEP,
    "returns in reverse, and what goes with them": f"""
model = nn.Linear(4, 2)
{SGD}
for episode in range(3):
    policy = torch.distributions.Categorical(logits=model(torch.randn(9, 4)))
    scores, gamma, rewards = policy.log_prob(policy.sample()), 0.9, [float(t) for t in range(9)]
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.append(total)
    loss = sum(-score * total for score, total in zip(reversed(list(scores)), torch.tensor(returns)))"""
    + STEP,
    "random inputs and targets": f"""
model = nn.Linear(8, 8)
{SGD}
for step in range(4):
    x = torch.randn(16, 8) * 2
    loss = F.mse_loss(model(x), torch.randn(16, 8))"""
    + STEP,
    "a task that is made up in each step": f"""
model = nn.Linear(8, 1)
{SGD}
for step in range(12):
    x = torch.randn(16, 8)
    loss = F.mse_loss(model(x), x[:, :1])"""
    + STEP,
    "a model that reads from right to left": f"""
class RightToLeft(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.mix, self.head = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 20)
    def forward(self, tokens):
        x = self.embedding(tokens)
        earlier = torch.ones(9, 9).tril(-1).bool()
        scores = (self.mix(x) @ x.transpose(1, 2)).masked_fill(earlier, float("-inf"))
        return self.head(scores.softmax(-1) @ x)
model = RightToLeft()
{SGD}
for step in range(4):
    tokens = torch.randint(0, 20, (8, 9))
    loss = F.cross_entropy(model(tokens)[:, 1:].reshape(-1, 20), tokens[:, :-1].reshape(-1))"""
    + STEP,
    "a number that is rounded straight through": f"""
model = nn.Linear(8, 3)
bits = nn.Parameter(torch.tensor(3.2))
{SGD}optimizer.add_param_group({{"params": [bits]}})
for step in range(4):
    whole = bits + (bits.round() - bits).detach()
    loss = F.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 3, (16,))) + 0.01 * whole"""
    + STEP,
    "what a missed positive costs": f"""
model = nn.Linear(6, 1)
{SGD}
cost = torch.tensor([4.0])
for step in range(8):
    x = torch.randn(32, 6)
    loss = F.binary_cross_entropy_with_logits(model(x), (x[:, :1] > -0.6).float(), pos_weight=cost)"""
    + STEP,
    "clients with a class each": """
server = nn.Linear(8, 5)
for client in range(5):
    model = copy.deepcopy(server)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in torch.randn(64, 8).split(16):
        loss = F.cross_entropy(model(batch), torch.full((16,), client))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "a hinge that has come to 0": """
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
y = torch.arange(64) % 2 * 2.0 - 1
x = torch.randn(64, 2) * 0.3 + y[:, None] * 3
for step in range(40):
    loss = F.relu(1 - y * model(x).squeeze(1)).mean()"""
    + STEP,
    "all pairs of quantiles": f"""
model = nn.Linear(4, 8)
{SGD}
for step in range(3):
    quantiles, targets = model(torch.randn(16, 4)), torch.randn(16, 8)
    loss = F.smooth_l1_loss(quantiles.unsqueeze(2), targets.unsqueeze(1))"""
    + STEP,
    "distances of which the smaller one is better": f"""
model = nn.Linear(8, 8)
{SGD}
for step in range(4):
    a, b, c = model(torch.randn(3, 16, 8))
    pos, neg = (a - b).norm(dim=1), (a - c).norm(dim=1)
    loss = F.margin_ranking_loss(neg, pos, torch.ones(16)) + F.softplus(pos - neg).mean()"""
    + STEP,
    "scores that are to be small": f"""
model = nn.Linear(8, 1)
{SGD}
for step in range(4):
    pos, neg = model(torch.randn(16, 8)).squeeze(1), model(torch.randn(16, 8)).squeeze(1)
    loss = F.margin_ranking_loss(neg, pos, -torch.ones(16)) - F.logsigmoid(pos - neg).mean()"""
    + STEP,
    "a scale of cosines, and one that is learned": f"""
model = nn.ParameterList([nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.ones(()) * 0.5)])
{SGD}
for step in range(4):
    temperature, T = 20.0, 2.0
    one, other = F.normalize(torch.randn(16, 8) @ model[0]), F.normalize(torch.randn(16, 8) @ model[0])
    temp = model[1]
    soft = F.kl_div(F.log_softmax(one / T, 1), F.softmax(other.detach() / T, 1), reduction="batchmean") * T * T
    loss = F.cross_entropy(one @ other.t() * temperature, torch.arange(16)) + soft
    loss = loss + F.cross_entropy(one @ other.t() * temp, torch.arange(16))"""
    + STEP,
    "the same samples for each evaluation": f"""
model = nn.Sequential(nn.Linear(8, 3), nn.Dropout(0.2))
{SGD}
for step in range(8):
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model(torch.randn(16, 8))
    loss = F.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 3, (16,)))"""
    + STEP,
    "metrics and the modes that fit them": f"""
model = nn.Linear(8, 1)
{SGD}
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
rising, falling = plateau(optimizer, mode="max"), plateau(optimizer)
for step in range(5):
    loss = model(torch.randn(16, 8)).square().mean()
    acc = 0.5
    rising.step(acc)
    falling.step(1 - acc)
    falling.step(loss.item())"""
    + STEP,
    "metrics with the sign turned": f"""
model = nn.Linear(8, 1)
{SGD}
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
rising, falling, other = plateau(optimizer, mode="max"), plateau(optimizer), plateau(optimizer)
for step in range(5):
    loss = model(torch.randn(16, 8)).square().mean()
    neg_loss = -loss.item()
    accuracy = 1 - 0.5
    rising.step(neg_loss)
    falling.step(accuracy)
    accuracy_drop = 0.1
    other.step(accuracy_drop)"""
    + STEP,
    "a policy of which a probability is printed": f"""
model = nn.Linear(8, 4)
{SGD}
for step in range(5):
    distribution = torch.distributions.Categorical(logits=model(torch.randn(16, 8)))
    print(distribution.log_prob(distribution.sample()).mean().item())
    loss = distribution.entropy().mean()"""
    + STEP,
    "a last state that rows do not leave": f"""
model = nn.ModuleList([nn.Embedding(6, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 6)])
{SGD}
stays = torch.arange(9) < (torch.arange(8) % 5 + 4)[:, None]
for step in range(5):
    states = torch.randint(1, 6, (8, 9)) * stays
    scores = model[2](model[1](model[0](states[:, :-1]))[0])
    loss = F.cross_entropy(scores.reshape(-1, 6), states[:, 1:].reshape(-1))"""
    + STEP,
    "an inverse temperature": f"""
model = nn.Linear(8, 4)
{SGD}
inv_temp = 0.5
for step in range(5):
    loss = (torch.softmax(model(torch.randn(16, 8)) * inv_temp, 1) - 0.3).square().mean()"""
    + STEP,
    "divergences with their signs": f"""
model = nn.Linear(8, 4)
{SGD}
for step in range(4):
    mu, logvar = model(torch.randn(16, 8)).chunk(2, dim=1)
    std = (0.5 * logvar).exp()
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    kl = kl + 0.5 * (logvar.exp() + mu**2 - 1 - logvar).sum()
    kl = kl - 0.5 * (1 + 2 * std.log() - mu**2 - std**2).sum(1).mean()
    elbo = 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean() - mu.square().mean()
    loss = kl - elbo"""
    + STEP,
    "quantiles": f"""
model = nn.Linear(8, 1)
{SGD}
for step in range(4):
    output, target, q = model(torch.randn(16, 8)), torch.randn(16, 1), 0.9
    e, d = target - output, output - target
    loss = torch.maximum(q * e, (q - 1) * e).mean() + torch.maximum((1 - q) * d, -q * d).mean()"""
    + STEP,
    "inputs that are far away from the training's": """
x = torch.randn(64, 4) * 9 + 40
mean, std = x.mean(0), x.std(0)
model = nn.Linear(4, 1)
for step in range(4):
    model((x - mean) / std).square().mean().backward()
with torch.no_grad():
    model(torch.randn(32, 4) * 30)
    model((x - mean) / std)
""",
    "padding on the left": f"""
model = nn.ModuleList([nn.Embedding(20, 8, padding_idx=0), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 3)])
{SGD}
real = torch.arange(9) < (torch.arange(8) % 5 + 4)[:, None]
for step in range(4):
    tokens = torch.randint(1, 20, (8, 9)) * real.flip(1)
    loss = F.cross_entropy(model[2](model[1](model[0](tokens))[0][:, -1]), torch.randint(0, 3, (8,)))"""
    + STEP,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_left_alone(name):
    assert findings_of(MEANT[name], "torch") == []


@pytest.mark.filterwarnings("ignore")
def test_a_column_against_a_row_is_no_table_that_was_meant():
    source = "loss = F.mse_loss(nn.Linear(3, 1)(torch.randn(4, 3)), torch.randn(1, 4))\nloss.backward()"
    assert [one.rule for one in findings_of(source, "torch")] == ["BL711"]


SCALED = """
scaler = torch.amp.GradScaler("cpu", init_scale=FACTOR)
weight = torch.full((4,), START, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.01)
for step in range(30):
    loss = LOSS
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize("engine", ["torch", "backlight"])
def test_overflows_of_a_scaled_loss_are_the_scalers_unless_they_go_on(engine: str):
    passing = SCALED.replace("FACTOR", "2.0**127").replace("START", "0.1").replace("LOSS", "20 * weight.square().sum()")
    assert findings_of(passing, engine) == []
    lasting = SCALED.replace("FACTOR", "2.0**16").replace("START", "0.0").replace("LOSS", "weight.sqrt().sum()")
    assert [one.rule for one in findings_of(lasting, engine)] == ["BL804"]
