"""Spoken digit strings with CTC."""

import torch
import torch.nn as nn

DIGITS, FRAMES, FEATS, MAXLEN = 6, 20, 12, 4


def utterances(n, seed):
    voice = torch.randn(DIGITS, FEATS, generator=torch.Generator().manual_seed(77))
    g = torch.Generator().manual_seed(seed)
    x = 0.3 * torch.randn(n, FRAMES, FEATS, generator=g)
    digits = torch.randint(0, DIGITS, (n, MAXLEN), generator=g)
    for j in range(MAXLEN):
        x[:, 5 * j + 1 : 5 * j + 4] += voice[digits[:, j]].unsqueeze(1)
    return x, digits


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(FEATS, 48, 3, padding=1)
        self.conv2 = nn.Conv1d(48, 48, 3, padding=1)
        self.out = nn.Linear(48, DIGITS + 1)  # here

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2)))
        h = torch.relu(self.conv2(h)).transpose(1, 2)
        return self.out(h).log_softmax(-1)


def encode(digits):
    return digits.clone()  # here


def decode(log_probs):
    texts = []
    for path in log_probs.argmax(-1).tolist():
        previous, text = None, []
        for s in path:
            if s != previous and s != 0:
                text.append(s)
            previous = s
        texts.append(text)
    return texts


def sequence_accuracy(model, x, digits):
    with torch.no_grad():
        hyp = decode(model(x))
    ref = encode(digits).tolist()
    return sum(h == r for h, r in zip(hyp, ref)) / len(ref)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, digits = utterances(400, seed=0)
    xt, dt = utterances(150, seed=1)
    model = Recognizer()
    ctc = nn.CTCLoss(blank=0)  # here
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        for idx in torch.randperm(len(x)).split(40):
            log_probs = model(x[idx]).transpose(0, 1)
            n = len(idx)
            in_len = torch.full((n,), FRAMES)
            out_len = torch.full((n,), MAXLEN)
            loss = ctc(log_probs, encode(digits[idx]), in_len, out_len)  # here
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} ctc {loss.item():.4f}")
    print(f"strings fully right {sequence_accuracy(model, xt, dt):.3f}")


if __name__ == "__main__":
    main()
