"""Learn to write a text character by character: python examples/char_language_model.py [TEXT_FILE] [--steps N]

A small transformer reads 64 characters at a time; without a file it learns its own source.
"""

import argparse
from pathlib import Path

import backlight as torch
from backlight import nn
from backlight.nn import functional as F

CONTEXT, WIDTH, HEADS, LAYERS = 64, 96, 4, 3


class Block(nn.Module):
    """Let each character look at those before it, then work on each alone."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.gather = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.work = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        parts = self.look(self.before(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))  # (batch, length, 3, heads, dim)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, length, dim)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.gather(seen.transpose(1, 2).flatten(2))
        return x + self.work(self.between(x))


class Model(nn.Module):
    """Scores for the next character at each place of a text."""

    def __init__(self, characters: int):
        super().__init__()
        self.characters, self.places = nn.Embedding(characters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters)

    def forward(self, codes):
        x = self.characters(codes) + self.places(torch.arange(codes.shape[1]))
        return self.scores(self.last(self.blocks(x)))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("text", nargs="?", default=__file__)
    options.add_argument("--steps", type=int, default=600)
    given = options.parse_args()

    torch.manual_seed(0)
    text = Path(given.text).read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    codes = torch.tensor([alphabet.index(character) for character in text])
    model = Model(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, given.steps + 1):
        starts = torch.randint(0, len(codes) - CONTEXT, (16, 1)) + torch.arange(CONTEXT)
        loss = F.cross_entropy(model(codes[starts]).flatten(0, 1), codes[starts + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")

    written = codes[:1]
    with torch.no_grad():
        for _ in range(min(300, given.steps)):
            chances = torch.softmax(model(written[-CONTEXT:].unsqueeze(0))[0, -1] / 0.7, -1)
            written = torch.cat([written, torch.multinomial(chances, 1)])
    print("".join(alphabet[code] for code in written.tolist()))


if __name__ == "__main__":
    main()
