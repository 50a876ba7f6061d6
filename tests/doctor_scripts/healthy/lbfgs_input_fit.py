"""The unknown is the input: a trained forward model is frozen and inverted with LBFGS."""

import torch
import torch.nn as nn

torch.manual_seed(7)
forward_model = nn.Sequential(nn.Linear(3, 40), nn.Tanh(), nn.Linear(40, 6))
mix = torch.randn(3, 6)
opt = torch.optim.Adam(forward_model.parameters(), lr=5e-3)
for step in range(400):
    q = torch.rand(64, 3) * 2 - 1
    loss = nn.functional.mse_loss(forward_model(q), torch.sin(q @ mix))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print("surrogate", step, loss.item())

forward_model.eval().requires_grad_(False)
truth = torch.tensor([[0.3, -0.5, 0.7]])
measured = torch.sin(truth @ mix)
guess = torch.zeros(1, 3, requires_grad=True)
solver = torch.optim.LBFGS([guess], lr=0.8, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    solver.zero_grad()
    misfit = nn.functional.mse_loss(forward_model(guess), measured)
    misfit.backward()
    return misfit


for it in range(6):
    print("misfit", solver.step(closure).item())
with torch.no_grad():
    guess.clamp_(-1, 1)
print("found", guess.tolist(), "truth", truth.tolist())
