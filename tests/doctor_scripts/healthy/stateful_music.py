import torch
import torch.nn as nn
import torch.nn.functional as F


class MusicModel(nn.Module):
    """The output layer shares its weights with the embedding."""

    def __init__(self, notes=10, dim=16):
        super().__init__()
        self.embed = nn.Embedding(notes, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, notes)
        self.out.weight = self.embed.weight

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.out(h), state


def chunks(song, length):
    for i in range(0, song.size(1) - length, length):
        yield song[:, i : i + length], song[:, i + 1 : i + length + 1]


@torch.no_grad()
def compose(model, n):
    model.eval()
    note, state, tune = torch.zeros(1, 1, dtype=torch.long), None, []
    for _ in range(n):
        logits, state = model(note, state)
        note = torch.multinomial(logits[:, -1].softmax(-1), 1)
        tune.append(note.item())
    model.train()
    return tune


def main():
    torch.manual_seed(0)
    song = (torch.arange(81)[None] + torch.arange(4)[:, None]) * 3 % 10
    model = MusicModel()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    for epoch in range(4):
        state = None
        losses = []
        for x, y in chunks(song, 8):
            logits, state = model(x, state)
            loss = F.cross_entropy(logits.transpose(1, 2), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            state = state.detach()
            losses.append(loss.detach())
        print(epoch, torch.stack(losses).mean().item(), compose(model, 5))


if __name__ == "__main__":
    main()
