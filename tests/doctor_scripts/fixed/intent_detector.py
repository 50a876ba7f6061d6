import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

INTENTS = ["greet", "book", "cancel", "pay", "bye"]


class IntentNet(nn.Module):
    def __init__(self, input_size, hidden_size, num_classes):
        super(IntentNet, self).__init__()
        self.l1 = nn.Linear(input_size, hidden_size)
        self.l2 = nn.Linear(hidden_size, hidden_size)
        self.l3 = nn.Linear(hidden_size, num_classes)
        self.relu = nn.ReLU()

    def forward(self, x):
        out = self.relu(self.l1(x))
        out = self.relu(self.l2(out))
        return self.l3(out)


def bags_of_words(n=160, vocab=30):
    labels = torch.randint(0, len(INTENTS), (n,))
    rates = torch.rand(len(INTENTS), vocab) ** 3
    return TensorDataset(torch.bernoulli(rates[labels]), labels)


def train(model, loader, num_epochs, learning_rate):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for epoch in range(num_epochs):
        for words, labels in loader:
            outputs = model(words)
            loss = criterion(outputs, labels)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (epoch + 1) % 2 == 0:
            print(f"Epoch [{epoch + 1}/{num_epochs}], Loss: {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    train_set, test_set = random_split(bags_of_words(), [128, 32])
    model = IntentNet(30, 16, len(INTENTS))
    train(model, DataLoader(train_set, batch_size=16, shuffle=True), num_epochs=8, learning_rate=5e-3)
    model.eval()
    with torch.no_grad():
        words, labels = next(iter(DataLoader(test_set, batch_size=32)))
        predicted = model(words).argmax(dim=1)
    print("test accuracy", (predicted == labels).float().mean().item())


if __name__ == "__main__":
    main()
