import torch
import torch.nn as nn

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the bear " * 8


class CharLSTM(nn.Module):
    def __init__(self, vocab_size, embed_dim=12, hidden_dim=24):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.embed = nn.Embedding(vocab_size, embed_dim)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, batch_first=True)
        self.out = nn.Linear(hidden_dim, vocab_size)

    def init_hidden(self, batch_size):
        return (torch.zeros(1, batch_size, self.hidden_dim), torch.zeros(1, batch_size, self.hidden_dim))

    def forward(self, tokens, hidden):
        emb = self.embed(tokens)
        output, hidden = self.lstm(emb, hidden)
        return self.out(output), hidden


def batchify(ids, batch_size):
    n = len(ids) // batch_size
    return ids[: n * batch_size].view(batch_size, n)


def get_batches(data, seq_len):
    for i in range(0, data.size(1) - 1 - seq_len, seq_len):
        yield data[:, i : i + seq_len], data[:, i + 1 : i + 1 + seq_len]


def train_epoch(model, data, optimizer, criterion, seq_len):
    model.train()
    hidden = model.init_hidden(data.size(0))
    total = 0.0
    steps = 0
    for x, y in get_batches(data, seq_len):
        optimizer.zero_grad()
        logits, hidden = model(x, hidden)  # here
        loss = criterion(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        loss.backward()  # here
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        steps += 1
    return total / steps


def main():
    torch.manual_seed(1)
    chars = sorted(set(TEXT))
    stoi = {c: i for i, c in enumerate(chars)}
    data = batchify(torch.tensor([stoi[c] for c in TEXT]), batch_size=4)
    model = CharLSTM(len(chars))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        loss = train_epoch(model, data, optimizer, criterion, seq_len=16)
        print(f"epoch {epoch} loss {loss:.3f}")


if __name__ == "__main__":
    main()
