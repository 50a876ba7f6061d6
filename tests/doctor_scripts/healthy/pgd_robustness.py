import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.fc = nn.Linear(6 * 16, 3)

    def forward(self, x):
        return self.fc(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))


def pgd(model, x, y, eps=0.1, alpha=0.04, steps=4):
    model.eval()
    delta = torch.zeros_like(x).uniform_(-eps, eps).requires_grad_(True)
    for _ in range(steps):
        loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
        loss.backward()
        delta.data = (delta + alpha * delta.grad.sign()).clamp(-eps, eps).data
        delta.grad.zero_()
    model.train()
    return (x + delta.detach()).clamp(0, 1)


def batches(n, patterns):
    for _ in range(n):
        y = torch.randint(0, 3, (24,))
        yield (patterns[y] + 0.1 * torch.randn(24, 1, 8, 8)).clamp(0, 1), y


def main():
    torch.manual_seed(0)
    patterns = torch.rand(3, 1, 8, 8)
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step, (x, y) in enumerate(batches(15, patterns)):
        x_adv = pgd(model, x, y)
        optimizer.zero_grad()  # drops what the attack left in the weights' gradients
        loss = F.cross_entropy(model(x_adv), y)
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, loss.item())
    # a targeted image: only the pixels are optimised
    image = torch.full((1, 1, 8, 8), 0.5, requires_grad=True)
    pixels = torch.optim.Adam([image], lr=0.05)
    for _ in range(10):
        pixels.zero_grad()
        F.cross_entropy(model(image), torch.tensor([2])).backward()
        pixels.step()
        with torch.no_grad():
            image.clamp_(0, 1)
    print("class of the image", model(image).argmax().item())


if __name__ == "__main__":
    main()
