import torch
import torch.nn as nn
import torch.nn.functional as F


class AttributeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        )
        self.age = nn.Linear(32, 1)
        self.glasses = nn.Linear(32, 2)

    def forward(self, images):
        features = self.trunk(images)
        return self.age(features).squeeze(1), self.glasses(features)


class Trainer:
    def __init__(self, model, optimizer, log_every=5):
        self.model = model
        self.optimizer = optimizer
        self.log_every = log_every
        self.step_count = 0

    def training_step(self, batch):
        images, ages, glasses = batch
        age_pred, glasses_logits = self.model(images)
        return {
            "age": F.l1_loss(age_pred, ages),
            "glasses": F.cross_entropy(glasses_logits, glasses),
        }

    def fit(self, batches):
        self.model.train()
        for batch in batches:
            self.optimizer.zero_grad()
            losses = self.training_step(batch)
            sum(losses.values()).backward()
            self.optimizer.step()
            self.step_count += 1
            if self.step_count % self.log_every == 0:
                print(self.step_count, {k: round(v.item(), 3) for k, v in losses.items()})


def batches(n, batch_size=8):
    for _ in range(n):
        images = torch.randn(batch_size, 3, 12, 12)
        glasses = (images[:, 0].mean(dim=(1, 2)) > 0).long()
        ages = 3.0 + 5 * images[:, 1].mean(dim=(1, 2))
        yield images, ages, glasses


def main():
    torch.manual_seed(0)
    model = AttributeNet()
    trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=1e-2))
    trainer.fit(batches(30))


if __name__ == "__main__":
    main()
