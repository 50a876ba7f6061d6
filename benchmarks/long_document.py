"""How much time and memory a long document takes when it is scored by the model that backlight carries.

    python benchmarks/long_document.py 1 10
    python benchmarks/long_document.py 1 --max-windows 0

Each size, in MB of text, runs in a process of its own: a text file made of a shuffled vocabulary, with one passage that
answers the query put in at two thirds. It is read as `backlight rank` reads it and ranked through `Reranker`. What is
printed: how many of its windows were scored, the peak of resident memory, how much was resident once the model was
loaded, the time, and whether the best window is the one with the passage. `--explain` also explains that window;
`--max-windows 0` has all windows scored.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from backlight.cli.documents import read_documents
from backlight.explain.reranker import Reranker
from backlight.explain.windows import MAX_WINDOWS

QUERY = "where does a plant get its energy from?"
PASSAGE = "Plants make their own food: in photosynthesis their leaves turn the energy of sunlight into sugar. "
WORDS = [
    *("the", "of", "and", "to", "in", "a", "is", "was", "for", "on", "as", "by", "with", "at", "from", "it", "that"),
    *("city", "river", "war", "king", "church", "school", "team", "season", "game", "player", "music", "song", "album"),
    *(
        "film",
        "book",
        "story",
        "law",
        "court",
        "state",
        "party",
        "election",
        "army",
        "battle",
        "ship",
        "island",
        "road",
    ),
    *("railway", "station", "bridge", "building", "company", "market", "price", "money", "bank", "tax", "trade", "ink"),
    *("metal", "iron", "steel", "glass", "machine", "engine", "wheel", "clock", "number", "line", "circle", "method"),
]


def write_document(file: Path, megabytes: float) -> None:
    """Write sentences of drawn words, with the passage at two thirds."""
    rng, size, done = random.Random(0), int(megabytes * 1e6), 0
    with open(file, "w", encoding="utf-8") as out:
        while done < size:
            sentence = f"{' '.join(rng.choices(WORDS, k=12)).capitalize()}. "
            if done <= size * 2 // 3 < done + len(sentence):
                sentence = PASSAGE
            done += out.write(sentence)


def measure(megabytes: float, model: str, explain: bool, max_windows: int) -> None:
    """Rank one document and print what it took."""
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "long.txt"
        write_document(file, megabytes)
        reranker = Reranker.from_pretrained(model)
        before, began = peak(), time.perf_counter()
        ((name, text),) = read_documents([str(file)])
        ranking = reranker.rank(QUERY, [text], names=[name], explain=int(explain), max_windows=max_windows)
        seconds = time.perf_counter() - began
    best, place = ranking.documents[0], text.index(PASSAGE)
    found = best.window.first_character <= place < best.window.last_character
    scored = f"{best.window.read:,} of {best.window.of:,} windows"
    print(
        f"{megabytes:>6g} MB  {scored:>22}  peak {peak():6.1f} MiB, {before:.1f} with the model loaded"
        f"  {seconds:.0f} s  score {best.score:.2f}, the passage is {'in' if found else 'NOT in'} the best window",
        flush=True,
    )


def peak() -> float:
    """Return the most memory that this process has had resident, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("megabytes", type=float, nargs="+")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--explain", action="store_true", help="also explain the best window")
    parser.add_argument("--max-windows", type=int, default=MAX_WINDOWS, help="0 scores all")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    for megabytes in given.megabytes:
        if given.here:
            measure(megabytes, given.model, given.explain, given.max_windows)
        else:
            more = ["--max-windows", str(given.max_windows), *(["--explain"] if given.explain else [])]
            subprocess.run(
                [sys.executable, __file__, f"{megabytes:g}", "--model", given.model, "--here", *more], check=True
            )


if __name__ == "__main__":
    main()
