"""A recurrent network of its own that classifies names, letter by letter, and an nn.RNN on packed names."""

import string

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
LETTERS = string.ascii_lowercase
NAMES = {"short": ["al", "bo", "cy", "di"], "long": ["alexandra", "bartholomew", "christopher", "dominique"]}


def line_to_tensor(line: str) -> torch.Tensor:
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for place, letter in enumerate(line):
        tensor[place][0][LETTERS.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int):
        super().__init__()
        self.hidden_size = hidden
        self.i2h, self.h2h, self.h2o = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, letter, hidden):
        hidden = torch.tanh(self.i2h(letter) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


rnn, criterion = RNN(len(LETTERS), 8, 2), nn.NLLLoss()
for epoch in range(5):
    total = 0.0
    for kind, names in enumerate(NAMES.values()):
        for name in names:
            hidden = rnn.init_hidden()
            rnn.zero_grad()
            for letter in line_to_tensor(name):
                output, hidden = rnn(letter, hidden)
            loss = criterion(output, torch.tensor([kind], dtype=torch.long))
            loss.backward()
            for p in rnn.parameters():
                p.data.add_(p.grad.data, alpha=-0.05)
            total += loss.item()
    print(f"{epoch}: {total:.3f}")
value, index = output.topk(1)
print(list(NAMES)[index[0].item()])
packed = pack_sequence([line_to_tensor(name).squeeze(1) for name in NAMES["long"]], enforce_sorted=False)
states, last = nn.RNN(len(LETTERS), 5)(packed)
padded, lengths = pad_packed_sequence(states)
print(padded.shape, lengths.tolist(), last.shape)
