import torch
import torch.nn as nn


class SwishFunction(torch.autograd.Function):
    """x * sigmoid(x), keeps only the input to save memory."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class Swish(nn.Module):
    def forward(self, x):
        return SwishFunction.apply(x)


class Net(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden), Swish(), nn.Linear(hidden, hidden), Swish(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def target(x):
    return torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1])


def main():
    torch.manual_seed(9)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for it in range(60):
        x = torch.rand(64, 2) * 4 - 2
        loss = (model(x) - target(x)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 20 == 0:
            print(it, round(loss.item(), 4))
    print("final", round(loss.item(), 4))


if __name__ == "__main__":
    main()
