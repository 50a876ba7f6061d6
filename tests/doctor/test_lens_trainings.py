"""Forms of the mistakes of whole trainings that the rules' own programs do not show."""

import pytest
from under_the_doctor import findings_of, marked_line

TRAIN = "optimizer.zero_grad(); F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)).backward(); optimizer.step()"
CASES = {
    "a model that was evaluated first learns in eval mode": (
        "BL722",
        f"""
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.eval()
with torch.no_grad():
    model(torch.randn(8, 4))
for _ in range(3):
    {TRAIN}  # here
""",
    ),
    "a layer that was added after the optimizer": (
        "BL731",
        f"""
model = nn.Sequential(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.append(nn.Linear(4, 1))  # here
for _ in range(5):
    {TRAIN}
""",
    ),
    "groups that leave a layer out": (
        "BL731",
        f"""
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1))
first, last = list(model[0].parameters()), list(model[2].parameters())
optimizer = torch.optim.SGD([dict(params=first), dict(params=last, lr=0.01)], lr=0.1)  # here
for _ in range(5):
    {TRAIN}
""",
    ),
    "an output that saturates": (
        "BL725",
        f"""
model = nn.Sequential(nn.Linear(4, 1), nn.Hardtanh(50.0, 60.0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(9):
    {TRAIN}  # here
""",
    ),
    "a shallow copy as a target network": (
        "BL769",
        """
online = nn.Sequential(nn.Linear(4, 2))
target = copy.copy(online)  # here
for _ in range(3):
    target.load_state_dict(online.state_dict())
""",
    ),
    "a comparison for an assignment": (
        "BL762",
        f"""
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for parameter in model.parameters():
    parameter.requires_grad == True  # here
{TRAIN}
""",
    ),
    "a cosine that is stepped for each batch": (
        "BL741",
        f"""
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
for _ in range(16):
    {TRAIN}
    scheduler.step()  # here
""",
    ),
    "an optimizer that maximises": (
        "BL743",
        f"""
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, maximize=True)
for _ in range(9):
    {TRAIN}  # here
""",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rule", "source"), CASES.values(), ids=CASES)
def test_a_mistake_is_found_at_its_line(rule: str, source: str):
    (found,) = findings_of(source, "torch")
    assert (found.rule, found.place.line) == (rule, marked_line(source))


@pytest.mark.filterwarnings("ignore")
def test_a_total_that_is_used_as_a_tensor_stays_one():
    program = """
model, total = nn.Linear(4, 1), 0
for _ in range(5):
    loss = model(torch.randn(8, 4)).square().mean()
    model.zero_grad()
    loss.backward()
    total += loss
print((total / 5).item())
"""
    (found,) = findings_of(program, "torch")
    assert found.corrected == "total += loss.detach()"


@pytest.mark.filterwarnings("ignore")
def test_an_attack_gets_a_leaf_again_where_its_gradient_is_read_apart():
    program = """
model, x = nn.Linear(4, 2), torch.rand(3, 4)
attacked = x.clone().requires_grad_()
for _ in range(3):
    F.cross_entropy(model(attacked), torch.tensor([0, 1, 0])).backward()
    move = 0.1 * attacked.grad.sign()
    attacked = torch.clamp(attacked + move, 0, 1)
    attacked = torch.max(torch.min(attacked, x + 0.2), x - 0.2)
"""
    found = findings_of(program, "torch")[0]
    wanted = "attacked = torch.max(torch.min(attacked, x + 0.2), x - 0.2).detach().requires_grad_()"
    assert found.corrected == wanted
