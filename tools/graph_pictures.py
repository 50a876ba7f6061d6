"""Takes the pictures of the graph's page that docs/graph.md shows: runs scripts, opens their pages, acts, and looks.

    PYTHONPATH=src:tests python tools/graph_pictures.py [FOLDER]

FOLDER is docs/images unless another is given. It needs Chromium, PyTorch and transformers.
"""

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from browser import Browser

from backlight.cli.main import main as backlight

FOLDER = Path(__file__).parent.parent / "docs" / "images"
QUALITY = 82
SETTLED = "new Promise((done) => setTimeout(done, 700))"  # nothing glides any more
EXPRESSION = """
import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a + b
d = b * 2
e = c * d
e.backward()
"""
BERT = """
import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100}
model = BertForSequenceClassification(BertConfig(num_hidden_layers=LAYERS, **sizes))
loss = model(torch.randint(0, 100, (2, 9)), labels=torch.tensor([0, 1])).loss
loss.backward()
"""
ENCODER = """
import torch
from torch import nn


class Bert(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words, self.positions = nn.Embedding(100, 32), nn.Embedding(64, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.classifier = nn.Linear(32, 2)

    def forward(self, ids):
        states = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.classifier(self.encoder(states)[:, 0])


torch.manual_seed(0)
model = Bert(LAYERS)
loss = nn.functional.cross_entropy(model(torch.randint(0, 100, (2, 9))), torch.tensor([0, 1]))
loss.backward()
"""
FIND = """(text) => {
    const field = document.getElementById("search");
    field.value = text;
    field.dispatchEvent(new Event("input"));
    document.getElementById("next").click();
}"""
CLEAR = "(field => { field.value = ''; field.dispatchEvent(new Event('input')); })(document.getElementById('search'))"
PATHS = "document.querySelector('#panel .ways').click()"
UP = "dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', shiftKey: true }));" * 4
LAYER = "document.querySelector('.item.repeated').click()"


@dataclass
class Scene:
    """A picture: a script, the engine that runs it, what is done on its page, and how one looks at it."""

    name: str
    script: str
    engine: str = "torch"
    acts: tuple[str, ...] = ()
    scheme: str = "light"
    size: tuple[int, int] = (1280, 760)


SCENES = (
    Scene("graph_expression", EXPRESSION, acts=("document.querySelector('[data-item=n1]').click()",), size=(1120, 620)),
    Scene("graph_bert", BERT.replace("LAYERS", "12"), size=(1280, 860)),
    Scene(
        "graph_layer",
        BERT.replace("LAYERS", "2"),
        acts=(f"({FIND})('layer.1 query weight')", PATHS, CLEAR, UP),
        scheme="dark",
        size=(1280, 900),
    ),
    Scene(
        "graph_gradients",
        ENCODER.replace("LAYERS", "12"),
        engine="backlight",
        acts=(
            "document.querySelector('[data-mode=gradient]').click()",
            LAYER,
            "document.getElementById('fit').click()",
        ),
        size=(1120, 1240),
    ),
    Scene("graph_narrow", ENCODER.replace("LAYERS", "2"), engine="backlight", size=(400, 820)),
)


def take(scene: Scene, browser: Browser, folder: Path, work: Path) -> Path:
    """Run a scene's script, open its page, act, and write what is seen."""
    script, page, picture = work / "train.py", work / "page.html", folder / f"{scene.name}.webp"
    script.write_text(scene.script, encoding="utf-8")
    code = backlight(["graph", str(script), "--engine", scene.engine, "--html", str(page)])
    assert code == 0, f"the script of {scene.name} ended with {code}"
    browser.size(*scene.size)
    browser.prefer(scene.scheme)
    browser.open(page)
    for act in scene.acts:
        browser.run(act)
        browser.run(SETTLED)
    browser.run(SETTLED)
    assert browser.problems() == [], scene.name
    told = browser.call("Page.captureScreenshot", format="webp", quality=QUALITY)
    picture.write_bytes(base64.b64decode(told["data"]))
    return picture


def main(argv: list[str]) -> None:
    """Take all pictures."""
    folder = Path(argv[1]) if len(argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory(prefix="backlight-") as work:
        browser = Browser(Path(work, "profile"))
        try:
            for scene in SCENES:
                picture = take(scene, browser, folder, Path(work))
                print(f"{picture} {picture.stat().st_size / 1024:.0f} KiB")
        finally:
            browser.close()


if __name__ == "__main__":
    main(sys.argv)
