import torch

torch.manual_seed(0)
t = torch.linspace(0, 5, 60)
data = 3.0 * torch.exp(-0.7 * t) + 0.5 + 0.03 * torch.randn(60)

amp = torch.tensor(1.0, requires_grad=True)
rate = torch.tensor(0.2, requires_grad=True)
offset = torch.tensor(0.0, requires_grad=True)
optimizer = torch.optim.LBFGS([amp, rate, offset], lr=0.2, max_iter=5)


def closure():
    optimizer.zero_grad()
    curve = amp * torch.exp(-rate * t) + offset
    loss = ((curve - data) ** 2).mean()
    loss.backward()
    return loss


for outer in range(20):
    loss = optimizer.step(closure)
    if outer % 5 == 0:
        print("outer", outer, "loss", loss.item())

print("loss", loss.item(), "amp", amp.item(), "rate", rate.item(), "offset", offset.item())
