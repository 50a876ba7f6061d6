import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class BagOfWords(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(dim, classes)

    def forward(self, tokens):
        return self.fc(self.drop(self.embedding(tokens)))


def make_split(n, seed, vocab=60, classes=4, length=12):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (n,), generator=g)
    topic_words = labels[:, None] * 15 + torch.randint(0, 15, (n, length), generator=g)
    noise = torch.randint(0, vocab, (n, length), generator=g)
    keep = torch.rand(n, length, generator=g) < 0.6
    return TensorDataset(torch.where(keep, topic_words, noise), labels)


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def evaluate(model, loader, criterion):
    model.eval()
    total, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for tokens, labels in loader:
            logits = model(tokens)
            total += criterion(logits, labels).item()
            correct += (logits.argmax(1) == labels).sum().item()
            n += labels.size(0)
    return total / len(loader), correct / n


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_split(128, 0), batch_size=32, shuffle=True)
    valid_loader = DataLoader(make_split(64, 1), batch_size=32)
    model = BagOfWords(60, 16, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(1, 6):
        train_loss = train_epoch(model, train_loader, criterion, optimizer)
        valid_loss, valid_acc = evaluate(model, valid_loader, criterion)
        print(f"{epoch:02d} train {train_loss:.3f} valid {valid_loss:.3f} acc {valid_acc:.2f}")


if __name__ == "__main__":
    main()
