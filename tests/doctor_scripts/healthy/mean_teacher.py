import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 24)
        self.bn = nn.BatchNorm1d(24)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(24, 2)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.bn(self.fc1(x)))))


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)
        for slow, fast in zip(self.model.buffers(), model.buffers()):
            slow.copy_(fast)


def noisy(x):
    return x + 0.1 * torch.randn_like(x)


def main():
    torch.manual_seed(0)
    labelled_x = torch.randn(16, 6)
    labelled_y = (labelled_x.sum(1) > 0).long()
    student = Net()
    teacher = EMA(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
    for step in range(30):
        unlabelled = torch.randn(48, 6)
        weight = min(1.0, step / 10)  # zero in the first step
        with torch.no_grad():
            goal = teacher.model(noisy(unlabelled)).softmax(dim=1)
        consistency = F.mse_loss(student(noisy(unlabelled)).softmax(dim=1), goal)
        loss = F.cross_entropy(student(labelled_x), labelled_y) + weight * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update(student)
    x = torch.randn(200, 6)
    print("teacher accuracy", (teacher.model(x).argmax(1) == (x.sum(1) > 0)).float().mean().item())


if __name__ == "__main__":
    main()
