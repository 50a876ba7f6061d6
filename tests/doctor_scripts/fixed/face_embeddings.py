import torch
import torch.nn as nn
import torch.nn.functional as F


class EmbeddingNet(nn.Module):
    def __init__(self, n_in=12, dim=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 24), nn.ReLU(), nn.Linear(24, dim))

    def forward(self, x):
        return self.net(x)


def pairwise_distances(emb):
    diff = emb.unsqueeze(0) - emb.unsqueeze(1)
    return (diff.pow(2).sum(dim=-1) + 1e-12).sqrt()


def contrastive_loss(emb, labels, margin=1.0):
    dist = pairwise_distances(emb)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    pull = dist[same].pow(2).mean()
    push = F.relu(margin - dist[~same]).pow(2).mean()
    return pull + push


def batches(n_batches, people=4, shots=4):
    centers = torch.randn(people, 12)
    for _ in range(n_batches):
        labels = torch.arange(people).repeat_interleave(shots)
        yield centers[labels] + 0.4 * torch.randn(people * shots, 12), labels


def train(model, n_batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for i, (x, labels) in enumerate(batches(n_batches)):
        loss = contrastive_loss(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(f"batch {i:3d} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    train(EmbeddingNet(), n_batches=20)


if __name__ == "__main__":
    main()
