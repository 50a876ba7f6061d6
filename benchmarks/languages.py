"""How often the rule for other languages fires: on English, where it should not, and on others, where it should.

    python benchmarks/languages.py english QUERIES.txt ...
    python benchmarks/languages.py others DJANGO/conf/locale DJANGO/contrib/admin/locale

`english`: files with an English text a line (queries, passages, commands). Each line is counted, and those that the
rule takes for another language are printed with `--show`. `others`: folders of gettext catalogues, as Django's, whose
messages of five words and more are counted by language: short messages of an interface are harder than questions.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from backlight.models.languages import other_language

MESSAGE = re.compile(r'^msgstr(?:\[\d\])? "(.*)"((?:\n".*")*)', re.MULTILINE)
NAMES = {
    "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese", "pt_BR": "Portuguese",
    "nl": "Dutch", "sv": "Swedish", "da": "Danish or Norwegian", "nb": "Danish or Norwegian", "pl": "Polish",
    "cs": "Czech or Slovak", "sk": "Czech or Slovak", "tr": "Turkish", "fi": "Finnish", "hu": "Hungarian",
    "ro": "Romanian", "id": "Indonesian or Malay", "vi": "Vietnamese",
    "ru": "Russian or another language in Cyrillic script", "el": "Greek", "ja": "Japanese", "ko": "Korean",
    "zh_Hans": "Chinese", "ar": "Arabic or another language in Arabic script",
}  # fmt: skip
WORDS = 5


def english(files: list[Path], show: bool) -> None:
    """Count the lines that the rule takes for another language."""
    for file in files:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        wrong = [(other_language(line), line) for line in lines if other_language(line)]
        print(f"{file.stem:>24}  {len(wrong):>4} of {len(lines):>6,} = {100 * len(wrong) / max(1, len(lines)):.3f} %")
        if show:
            for language, line in wrong[:40]:
                print(f"    {language}: {line[:160]}")


def others(folders: list[Path]) -> None:
    """Count the messages of each language that are named rightly, wrongly and not at all."""
    total: Counter[str] = Counter()
    for code, name in NAMES.items():
        found: Counter[str] = Counter()
        for folder in folders:
            for message in messages(folder / code / "LC_MESSAGES" / "django.po"):
                said = other_language(message)
                found["right" if said == name else "silent" if said is None else "another"] += 1
        count = found.total() or 1
        shares = {kind: 100 * found[kind] / count for kind in ("right", "another", "silent")}
        print(f"{name[:24]:>24}  {count:>4}  " + "  ".join(f"{kind} {share:3.0f} %" for kind, share in shares.items()))
        total += found
    print(f"{'all':>24}  {total.total():>4}  named {100 - 100 * total['silent'] / total.total():.0f} %")


def messages(file: Path) -> list[str]:
    """Return the messages of a catalogue that have words enough."""
    if not file.exists():
        return []
    found = MESSAGE.findall(file.read_text(encoding="utf-8"))
    texts = ["".join([first, *re.findall(r'"(.*)"', rest)]) for first, rest in found]
    texts = [re.sub(r"%\(\w+\)\w|%\w|<[^>]*>|\\n", " ", text) for text in texts]
    return [text for text in texts if len(text.split()) >= WORDS or len(text.encode()) > 3 * len(text) // 2 > 12]


def main() -> None:
    """Measure on English, or on other languages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("english", "others"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true", help="print the lines that were taken for another language")
    given = parser.parse_args()
    others(given.paths) if given.what == "others" else english(given.paths, given.show)


if __name__ == "__main__":
    main()
