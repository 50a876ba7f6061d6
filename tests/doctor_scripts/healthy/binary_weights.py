import torch
import torch.nn as nn
import torch.nn.functional as F


class SignSTE(torch.autograd.Function):
    """Sign in the forward pass, clipped identity in the backward pass."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1).to(grad_output.dtype)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().mean(1, keepdim=True)
        return F.linear(x, SignSTE.apply(self.weight) * scale, self.bias)


class BinaryNet(nn.Module):
    def __init__(self, d_in, hidden, classes):
        super().__init__()
        self.fc1 = BinaryLinear(d_in, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.fc2 = BinaryLinear(hidden, classes)

    def forward(self, x):
        h = self.bn(self.fc1(x))
        h = h + (SignSTE.apply(h) - h).detach() if not self.training else SignSTE.apply(h)
        return self.fc2(h)


def clip_latent_weights(model):
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, BinaryLinear):
                m.weight.clamp_(-1, 1)


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 20)
    y = (x[:, :5].sum(1) > x[:, 5:10].sum(1)).long()
    model = BinaryNet(20, 64, 2)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(40):
        model.train()
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        clip_latent_weights(model)
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(x).argmax(1) == y).float().mean().item()
            print(epoch, f"loss {loss.item():.3f} acc {acc:.3f}")


main()
