"""Mistakes with optimisers and training loops of which no engine says anything; like silent_mistakes.py."""

from silent_mistakes import LOOP, Mistake

MISTAKES = (
    Mistake(
        "optimiser holds a replaced layer of another shape",
        "optimizer-holds-replaced",
        "the new model.2.weight, model.2.bias have gradients and are in no optimiser: no step changes them",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[2] = nn.Linear(8, 2)  # here
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()
""",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[2] = nn.Linear(8, 2)
optimizer.add_param_group({"params": model[2].parameters()})
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()
""",
        cure="add_param_group",
    ),
    Mistake(
        "list of losses with their graphs",
        "total-loss-keeps-graphs",
        "losses keeps the graph of every iteration alive",
        LOOP
        + """
losses = []
for step in range(6):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(sum(losses) / len(losses))  # here
""",
        LOOP
        + """
losses = []
for step in range(6):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
print(sum(losses) / len(losses))
""",
        cure="losses.append(loss.item())",
    ),
)
