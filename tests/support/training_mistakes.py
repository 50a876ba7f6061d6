"""Mistakes of whole trainings that no engine reports; like silent_mistakes.py."""

from silent_mistakes import LOOP, Mistake

SWISH = """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return {}

model = nn.Linear(3, 4)
Swish.apply(model(torch.randn(5, 3))).sum().backward()
"""

STACK = """
def build(depth):
    layers = []
    for _ in range(depth):
        layers += {}
    return nn.Sequential(*layers, nn.Linear(12, 1))

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        loss = model(torch.randn(16, 12)).square().mean()  # here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train(build(12))
"""

PENALTY = """
critic = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
def penalty(points):
    points = points.requires_grad_()
    slope = torch.autograd.grad(critic(points).sum(), points{})[0]{}
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()
for step in range(2):
    critic.zero_grad()
    (critic(torch.randn(4, 2)).mean() + 10 * penalty(torch.randn(4, 2))).backward()
"""

CODEC = """
encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
for step in range(4):
    images = torch.randn(8, 4)
    code = encoder(images)
    {}
    loss = (decoder(code) - images).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

MISTAKES = (
    Mistake(
        "backward without a term of the product rule",
        "function-backward-wrong",
        "the slope of its forward is",
        SWISH.format("grad * s  # here"),
        SWISH.format("grad * (s + x * s * (1 - s))"),
        cure="gradcheck",
    ),
    Mistake(
        "a deep stack of sigmoids",
        "vanishing-gradient",
        "each sigmoid multiplies the gradient by its slope",
        STACK.format("[nn.Linear(12, 12), nn.Sigmoid()]"),
        STACK.format("[nn.Linear(12, 12), nn.BatchNorm1d(12), nn.ReLU()]"),
        cure="kaiming_normal_",
    ),
    Mistake(
        "a gradient penalty that is a constant",
        "penalty-without-create-graph",
        "was added to the loss",
        PENALTY.format("", "  # here"),
        PENALTY.format(", create_graph=True", ""),
        corrected="slope = torch.autograd.grad(critic(points).sum(), points, create_graph=True)[0]  # here",
    ),
    Mistake(
        "zero_grad before each batch, step after every few",
        "zero-grad-between-accumulations",
        "cleared 3 gradients",
        LOOP
        + """
for batch in range(16):
    optimizer.zero_grad()  # here
    (F.mse_loss(model(x), y) / 4).backward()
    if batch % 4 == 3:
        optimizer.step()
""",
        LOOP
        + """
other = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in range(16):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    if batch % 4 == 3 and batch != 7:  # a condition that fails now and then
        optimizer.step()
    elif batch == 7:
        other.step()
    else:
        print([param.grad.norm().item() for param in model.parameters()])
""",
        cure="after optimizer.step()",
    ),
    Mistake(
        "a code that is rounded before the decoder",
        "gradients-all-zero",
        "All gradients behind round()",
        CODEC.format("code = torch.round(code * 4) / 4  # here"),
        CODEC.format("code = code + (torch.round(code * 4) / 4 - code).detach()"),
    ),
    Mistake(
        "softmax of one score",
        "gradients-all-zero",
        "softmax over a single number is always 1",
        """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    probabilities = torch.softmax(model(torch.randn(8, 3)), dim=1)  # here
    optimizer.zero_grad()
    (probabilities - 0.3).square().mean().backward()
    optimizer.step()
""",
        """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    probabilities = torch.softmax(model(torch.randn(8, 3)), dim=0)
    optimizer.zero_grad()
    (probabilities - 0.3).square().mean().backward()
    optimizer.step()
""",
        cure="sigmoid",
    ),
    Mistake(
        "a learning rate that explodes in two steps",
        "exploding-gradient",
        "The norm of w.grad in 2 backwards",
        """
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1e9)
for step in range(2):
    optimizer.zero_grad()
    (w ** 2).sum().backward()  # here
    optimizer.step()
""",
        """
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    (1e9 * (w ** 2).sum()).backward()
    w.grad.div_(1e9)
    optimizer.step()
""",
    ),
    Mistake(
        "padding_idx on the first word",
        "padding-index-is-token",
        "was between other tokens",
        """
table = nn.Embedding(5, 4, padding_idx=0)  # here
for step in range(4):
    for words in ([0, 1], [2, 0, 3, 0, 4]):
        table.zero_grad()
        table(torch.tensor(words)).mean(dim=0).square().sum().backward()
""",
        """
table = nn.Embedding(5, 4, padding_idx=0)
for step in range(4):
    for categories in ([0, 1], [2, 0, 3, 0, 4]):
        table.zero_grad()
        table(torch.tensor(categories)).square().mean().backward()
""",
        corrected="table = nn.Embedding(5, 4)",
    ),
    Mistake(
        "losses kept in a list with their graphs",
        "total-loss-keeps-graphs",
        "losses holds",
        LOOP
        + """
losses = []
for step in range(16):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)  # here
""",
        LOOP
        + """
losses = []
for step in range(16):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
""",
        corrected="losses.append(loss.item())  # here",
    ),
)
