"""Mistakes with optimizers and training loops of which no engine says anything; like silent_mistakes.py."""

from silent_mistakes import LOOP, Mistake

MISTAKES = (
    Mistake(
        "optimizer holds a replaced layer of another shape",
        "optimizer-holds-replaced",
        "the new model.2.weight, model.2.bias have gradients and are in no optimizer: no step changes them",
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
        corrected="losses.append(loss.item())",
    ),
    Mistake(
        "loss made of the mean of numbers",
        "loss-rebuilt-as-leaf",
        "Its value was taken out of the graph by item()",
        LOOP
        + """
for step in range(3):
    losses = []
    for part in x.split(4):
        losses.append(model(part).square().mean().item())
    loss = torch.tensor(sum(losses) / len(losses), requires_grad=True)  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        LOOP
        + """
scale = torch.tensor(3.0, requires_grad=True)
for step in range(3):
    losses = [model(part).square().mean() for part in x.split(4)]
    print(sum(one.item() for one in losses) / len(losses))
    optimizer.zero_grad()
    (scale * sum(losses)).backward()
    optimizer.step()
    scale.backward()
""",
        alone=True,
    ),
    Mistake(
        "zero_grad of the model between backward and step",
        "step-without-gradients",
        "zero_grad() clears the gradients",
        LOOP
        + """
for step in range(3):
    F.mse_loss(model(x), y).backward()
    model.zero_grad()  # here
    optimizer.step()
""",
        LOOP
        + """
for step in range(3):
    model.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    model.zero_grad()
""",
    ),
    Mistake(
        "optimizer of another model",
        "step-without-gradients",
        "model.weight, model.bias get gradients and are in no optimizer. No backward has reached old.weight, old.bias.",
        """
old, model = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.SGD(old.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()  # here
""",
        """
old, model = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.SGD([*old.parameters(), *model.parameters()], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(old(torch.ones(2, 4))[:, [0, 1, 0, 1]]).sum().backward()
    optimizer.step()
""",
        cure="create optimizer from the parameters of the model that runs",
    ),
    Mistake(
        "optimizer of a model that was copied since",
        "step-without-gradients",
        "the parameters in optimizer are not those that get gradients",
        """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = copy.deepcopy(model)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()  # here
""",
        """
model = nn.Linear(4, 2)
model, before = copy.deepcopy(model), model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
""",
    ),
    Mistake(
        "optimizer of what is detached",
        "step-without-gradients",
        "head.weight, head.bias get gradients and are in no optimizer. The result computed from backbone.weight, "
        "backbone.bias goes through detach()",
        """
backbone, head = nn.Linear(4, 8), nn.Linear(8, 2)
optimizer = torch.optim.Adam(backbone.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    head(torch.relu(backbone(torch.ones(2, 4)).detach())).sum().backward()
    optimizer.step()  # here
""",
        """
backbone, head = nn.Linear(4, 8), nn.Linear(8, 2)
optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    head(torch.relu(backbone(torch.ones(2, 4)).detach())).sum().backward()
    optimizer.step()
""",
        cure="give head.weight, head.bias to an optimizer",
    ),
    Mistake(
        "loss of rounded numbers",
        "gradients-all-zero",
        "its derivative is 0 everywhere",
        LOOP
        + """
for step in range(4):
    optimizer.zero_grad()
    out = model(x).round()  # here
    (out - 1.5).square().mean().backward()
    optimizer.step()
""",
        LOOP
        + """
for step in range(4):
    optimizer.zero_grad()
    out = model(x)
    print((out.round() - 1.5).abs().mean())
    (out.round() - 1.5 + out).square().mean().backward()
    optimizer.step()
""",
        cure="straight through",
    ),
    Mistake(
        "clipping before backward",
        "clip-before-backward",
        "it clipped nothing",
        LOOP
        + """
for step in range(3):
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # here
    model(x).square().mean().backward()
    optimizer.step()
""",
        LOOP
        + """
for step in range(3):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()
""",
        cure="Clip between backward() and step()",
    ),
)

NOTES = (
    (
        "gradients-nobody-uses",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()  # here
""",
    ),
)
