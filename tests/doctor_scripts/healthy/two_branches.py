import math
import torch
import torch.nn as nn

# mixture density network for the inverse problem x -> several possible y
torch.manual_seed(0)
y = torch.rand(400, 1)
x = y + 0.3 * torch.sin(2 * math.pi * y) + 0.03 * torch.randn_like(y)

K = 5
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 3 * K))
with torch.no_grad():
    net[-1].bias[K : 2 * K] = torch.linspace(0, 1, K)  # spread the centres at the start


def nll(out, target):
    logit, mu, log_sigma = out.chunk(3, dim=1)
    log_sigma = log_sigma.clamp(-4.0, 2.0)
    log_w = torch.log_softmax(logit, dim=1)
    log_p = -0.5 * ((target - mu) / log_sigma.exp()) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_w + log_p, dim=1).mean()


opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(301):
    loss = nll(net(x), y)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    opt.step()
    if step % 100 == 0:
        print(step, round(loss.item(), 4))
