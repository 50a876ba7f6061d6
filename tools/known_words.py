"""Write src/backlight/models/known_words.txt: English words that would be taken for misspellings of others.

python tools/known_words.py WORDS [WORDS ...]

Each file of words has one a line, in lower case: those of Debian's wamerican-large and wbritish-large without 's, and
words of the training data (`examples/reranker_sources`) that are in three passages or more. Kept are those that the
built-in model's vocabulary lacks and that the rule (NOTE [Misspellings] in src/backlight/models/misspellings.py) would
read as another word.
"""

import re
import sys
from pathlib import Path

from backlight.models.checkpoint import find_model
from backlight.models.misspellings import KNOWN_WORDS, Speller
from backlight.models.tokens import Tokenizer

COMMENT = re.compile(r"^#.*\n", re.MULTILINE)


def main() -> None:
    """Write the words that the rule would read as others, those first that may make others known by their endings."""
    words = {word for file in sys.argv[1:] for word in Path(file).read_text(encoding="utf-8").split()}
    speller = Speller(Tokenizer(find_model("builtin"), 512), frozenset())
    kept: set[str] = set()
    for word in sorted(words, key=lambda one: (len(one), one)):
        if word.isascii() and word.isalpha() and word.islower() and speller.read_as(word):
            kept.add(word)
            speller.known = frozenset(kept)
    about = "".join(COMMENT.findall(KNOWN_WORDS.read_text(encoding="utf-8"))) if KNOWN_WORDS.is_file() else ""
    KNOWN_WORDS.write_text(about + "\n".join(sorted(kept)) + "\n", encoding="utf-8")
    print(f"{len(kept):,} of {len(words):,} words")


if __name__ == "__main__":
    main()
