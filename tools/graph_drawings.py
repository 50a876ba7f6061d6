"""Draw the pictures of docs/drawing.md: the seeds' expression, and BERT of PyTorch and of backlight.

    python tools/graph_drawings.py

Weights are random and small, and so are the numbers; what is drawn is how the graph is built.
"""

import os
import sys
from pathlib import Path

import numpy as np
import torch

import backlight
from backlight import lens
from backlight.lens.records.record import Record
from backlight.models.encoders.bert import Bert, BertConfig
from backlight.models.tokens import Batch

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZES = {
    "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000,
}  # fmt: skip
TOKENS = 16


def expression() -> Record:
    """Return the record of e = (a + b) · (b · 2)."""
    a = backlight.tensor(2.0, requires_grad=True)
    b = backlight.tensor(1.0, requires_grad=True)
    with lens.watch(title="e = (a + b) · (b · 2)") as watch:
        c = a + b
        d = b * 2
        e = c * d
        e.backward()
    return watch.record


def bert_of_pytorch(layers: int) -> Record:
    """Return the record of a training step of transformers' BERT."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    torch.manual_seed(0)
    settings = transformers.BertConfig(num_hidden_layers=layers, attn_implementation="sdpa", **SIZES)
    model = transformers.BertForSequenceClassification(settings).eval()
    ids = torch.randint(0, SIZES["vocab_size"], (2, TOKENS))
    with lens.watch(engine="torch", title=f"BERT, {layers} layers, in PyTorch") as watch:
        loss = model(input_ids=ids, labels=torch.tensor([0, 1])).loss
        loss.backward()
    return watch.record


def bert_of_backlight(layers: int) -> Record:
    """Return the record of a training step of backlight's BERT, which has no module paths."""
    import transformers

    torch.manual_seed(0)
    settings = transformers.BertConfig(num_hidden_layers=layers, **SIZES)
    weights = transformers.BertModel(settings, add_pooling_layer=False).state_dict()
    bert = Bert(BertConfig.of(settings.to_dict()), {name: weight.numpy() for name, weight in weights.items()})
    for weight in bert.parameters().values():
        weight.requires_grad_()
    ids = np.random.default_rng(0).integers(0, SIZES["vocab_size"], 2 * TOKENS)
    batch = Batch(ids, np.zeros_like(ids), np.tile(np.arange(TOKENS), 2), (TOKENS, TOKENS))
    head = backlight.tensor(np.random.default_rng(1).normal(size=(128, 2)).astype(np.float32), requires_grad=True)
    with lens.watch(engine="backlight", title=f"BERT, {layers} layers, in backlight") as watch:
        states = bert(batch)
        logits = states[[0, TOKENS]] @ head
        loss = backlight.nn.functional.cross_entropy(logits, backlight.tensor([0, 1]))
        loss.backward()
    return watch.record


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    expression().svg(IMAGES / "drawing_expression.svg")
    small, large = bert_of_pytorch(2), bert_of_pytorch(12)
    small.svg(IMAGES / "drawing_bert_2.svg", open=["bert.encoder.layer.0.attention.self"])
    large.svg(IMAGES / "drawing_bert_12.svg")
    large.svg(IMAGES / "drawing_bert_12_open.svg", open=["bert.encoder.layer.0.attention"])
    bert_of_backlight(12).svg(IMAGES / "drawing_bert_12_backlight.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
