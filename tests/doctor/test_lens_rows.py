"""Mistakes with rows, masks, targets and teachers: forms that the rules' own programs do not show, and near misses."""

import pytest
from under_the_doctor import findings_of, marked_line

STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SGD = "\noptimizer = torch.optim.SGD(model.parameters(), lr=0.05)\n"
LANGUAGE = f"""
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)
        self.body = MADE
    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(RUN)
model = Language(){SGD}
tokens = torch.randint(0, 20, (8, 9))
for step in range(4):
    loss = F.cross_entropy(model(tokens[:, :-1]).reshape(-1, 20), tokens[:, 1:].reshape(-1))
{STEP}"""
ENCODER = "nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1)"
PADDED = f"""
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head, self.body = nn.Embedding(20, 16), nn.Linear(16, 2), {ENCODER}
    def forward(self, tokens):
        h = self.body(self.embedding(tokens), src_key_padding_mask=tokens HIDDEN 0)
        kept = (tokens KEPT 0).unsqueeze(-1).float()
        return self.head((h * kept).sum(1) / kept.sum(1))
model = Classifier(){SGD}
tokens, lengths = torch.randint(1, 20, (8, 9)), torch.arange(8) % 5 + 4
tokens[torch.arange(9)[None] >= lengths[:, None]] = 0
for step in range(4):
    loss = F.cross_entropy(model(tokens), torch.arange(8) % 2)
{STEP}"""
ROWS = f"""
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
model = nn.Linear(4, 1){SGD}
"""
LOADED = f"""
x = (x - x.mean(0)) / x.std(0)
for one, other in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
    loss = F.mse_loss(model(one), other)
{STEP}"""
BATCHES = f"""
for start in range(0, 64, 16):
    loss = F.mse_loss(model(x[start : start + 16]), y[start : start + 16])
{STEP}"""
AVERAGE = f"""
model = nn.Linear(4, 1)
average, tau = copy.deepcopy(model), 0.005{SGD}
for step in range(5):
    loss = model(torch.randn(8, 4)).square().mean()
{STEP}
    for kept, new in zip(average.parameters(), model.parameters()):
        kept.data.copy_(OLD * kept.data + NEW * new.data)  # here
"""
LOSS_MASK = f"""
model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20)){SGD}
tokens, lengths = torch.randint(1, 20, (8, 9)), torch.arange(8) % 5 + 4
tokens[torch.arange(9)[None] >= lengths[:, None]] = 0
target = torch.cat([tokens[:, 1:], torch.zeros(8, 1, dtype=torch.long)], 1)
for step in range(4):
    losses = F.cross_entropy(model(tokens).transpose(1, 2), target, reduction="none")
    mask = (target IS 0).float()
    loss = (losses * mask).sum() / mask.sum()  # here
{STEP}"""
EPISODES = f"""
model, target_model, gamma = nn.Linear(4, 2), nn.Linear(4, 2), 0.99{SGD}
for step in range(4):
    states, done, rewards = torch.randn(8, 4), (torch.rand(8) < 0.1).float(), torch.randn(8)
    with torch.no_grad():
        wanted = rewards + gamma * target_model(states).max(1).values * (FACTOR)  # here
    loss = F.mse_loss(model(states).max(1).values, wanted)
{STEP}"""
HOOK = f"""
model = nn.Embedding(10, 4)
frozen = torch.zeros(10, 1)
frozen[:5] = 1
model.weight.register_hook(lambda grad: grad * (FACTOR))  # here
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.arange(10)).square().sum()
{STEP}"""
AGENT = """
class Agent:
    def __init__(self):
        self.q = nn.Linear(4, 2)
        self.target_q = COPY  # here
        self.optimizer = torch.optim.Adam(self.q.parameters())
    def train(self):
        for step in range(4):
            loss = self.q(torch.randn(8, 4)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
Agent().train()
"""
WINDOWS = f"""
series = torch.sin(torch.arange(200) * 0.3) + 0.1 * torch.randn(200)
x = torch.stack([series[start : start + 10] for start in range(150)])
y = torch.stack([series[start + NEXT] for start in range(150)])
model = nn.Linear(10, 1){SGD}
for step in range(4):
    loss = F.mse_loss(model(x).squeeze(1), y)  # here
{STEP}"""


def language(made: str, run: str) -> str:
    return LANGUAGE.replace("MADE", made).replace("RUN", f"{run}")


GRU, LAST = "nn.GRU(16, {}, batch_first=True{})", "self.body(x)[0]"
MASK = "torch.tril(torch.ones(8, 8), -1).bool()"
CAUSAL = "self.body(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True)"
CASES = {  # the rule, the wrong program, the right one
    "an encoder without a mask": ("BL791", language(ENCODER, "self.body(x)"), language(ENCODER, CAUSAL)),
    "a causal mask inverted": (
        "BL790",
        language(ENCODER, f"self.body(x, mask={MASK})"),
        language(ENCODER, CAUSAL),
    ),
    "tokens that are not shifted": (
        "BL792",
        language(GRU.format(16, ""), LAST).replace("tokens[:, :-1]", "tokens").replace("tokens[:, 1:]", "tokens"),
        language(GRU.format(16, ""), LAST),
    ),
    "padding attended to": (
        "BL790",
        PADDED.replace("HIDDEN", "!=").replace("KEPT", "!="),
        PADDED.replace("HIDDEN", "==").replace("KEPT", "!="),
    ),
    "padding pooled": (
        "BL790",
        PADDED.replace("HIDDEN", "==").replace("KEPT", "=="),
        PADDED.replace("HIDDEN", "==").replace("KEPT", "!="),
    ),
    "a loss of padding": ("BL790", LOSS_MASK.replace("IS", "=="), LOSS_MASK.replace("IS", "!=")),
    "what comes after an episode": (
        "BL790",
        EPISODES.replace("(FACTOR)", "done"),
        EPISODES.replace("FACTOR", "1 - done"),
    ),
    "a hook that frees what is frozen": (
        "BL790",
        HOOK.replace("(FACTOR)", "frozen"),
        HOOK.replace("FACTOR", "1 - frozen"),
    ),
    "rows of a data set": (
        "BL789",
        ROWS + "x = x[torch.randperm(64)]" + LOADED,
        ROWS + "order = torch.randperm(64)\nx, y = x[order], y[order]" + LOADED,
    ),
    "two orders of NumPy": (
        "BL789",
        ROWS + "x, y = x[np.random.permutation(64)], y[np.random.permutation(64)]" + BATCHES,
        ROWS + "order = np.random.permutation(64)\nx, y = x[order], y[order]" + BATCHES,
    ),
    "an average of products": (
        "BL799",
        AVERAGE.replace("OLD", "tau").replace("NEW", "(1 - tau)"),
        AVERAGE.replace("OLD", "(1 - tau)").replace("NEW", "tau"),
    ),
    "an agent's target": (
        "BL719",
        AGENT.replace("COPY", "self.q"),
        AGENT.replace("COPY", "copy.deepcopy(self.q)"),
    ),
    "a window too long": ("BL792", WINDOWS.replace("NEXT", "9"), WINDOWS.replace("NEXT", "10")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_mistake_of_rows_masks_or_targets_is_found_and_its_correction_is_silent(name):
    rule, wrong, right = CASES[name]
    found = findings_of(wrong, "torch")
    assert [one.rule for one in found] == [rule]
    if "# here" in wrong:
        assert found[0].place.line == marked_line(wrong)
    assert findings_of(right, "torch") == []


@pytest.mark.parametrize(("diagonal", "hidden"), [(0, True), (1, False)])
def test_the_cure_of_a_causal_mask_does_not_hide_positions_from_themselves(diagonal, hidden):
    source = f"""
q = torch.randn(2, 6, 8, requires_grad=True)
mask = torch.ones(6, 6, dtype=torch.bool).triu({diagonal})
mask[-1, -1] = True
F.scaled_dot_product_attention(q, q, q, attn_mask=mask).nan_to_num().sum().backward()"""
    found = [one for one in findings_of(source, "torch") if one.rule == "BL790"]
    assert [("~mask alone would hide" in one.cure) for one in found] == [hidden]
