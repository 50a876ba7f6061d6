import torch
from torch import nn

torch.manual_seed(24)
x = torch.linspace(0, 1, 80).unsqueeze(1)
y = torch.exp(-3 * x) * torch.cos(12 * x)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=10)
loss_fn = nn.MSELoss()


def closure():
    opt.zero_grad()
    loss = loss_fn(net(x), y)
    loss.backward()
    return loss


for epoch in range(25):
    loss = closure()
    opt.step()  # here
    if epoch % 6 == 0:
        print(epoch, loss.item())
