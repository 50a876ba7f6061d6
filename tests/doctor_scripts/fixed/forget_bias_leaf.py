import torch
from torch import nn

torch.manual_seed(19)
hidden = 16
lstm = nn.LSTM(2, hidden, batch_first=True)
out = nn.Linear(hidden, 1)
# start with an open forget gate
with torch.no_grad():
    lstm.bias_hh_l0[hidden : 2 * hidden].fill_(1.0)

value = torch.rand(200, 12, 1)
mark = torch.zeros(200, 12, 1)
mark[torch.arange(200), torch.randint(0, 12, (200,))] = 1.0
x = torch.cat([value, mark], dim=2)
y = (value * mark).sum(1)

opt = torch.optim.Adam([*lstm.parameters(), *out.parameters()], lr=0.01)
for epoch in range(80):
    h, _ = lstm(x)
    loss = nn.functional.mse_loss(out(h[:, -1]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 20 == 0 or epoch == 79:
        print(epoch, loss.item())
