"""Handbooks that Debian packages, with licences that let a model's weights be Apache-2.0.

NOTE [Licences]
Taken: public domain, permissive licences, and CC BY-SA, under which the encyclopedia's text stands too. Left out,
with the reasons, in `LEFT_OUT`: what is under the GPL or the GFDL alone, whose owners never said that a model trained
on it may carry another licence. A handbook under two licences is taken under the one that is named here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reranker_sources.dictionaries import jargon, wordnet
from reranker_sources.pages import add_page
from reranker_sources.source import Collector, Source

LARGEST = 2_000_000  # characters of a page that is read
SKIPPED = re.compile(r"genindex|py-modindex|^release-\d|releaselog|^changes|^news")  # lists, not texts


@dataclass(frozen=True)
class Handbook:
    """Where a Debian package keeps its pages.

    Args:
        pages: a pattern below the root folder.
        tasks: headings are tasks (see `add_page`).
    """

    name: str
    domain: str
    package: str
    licence: str
    pages: str
    tasks: bool = False

    def read(self, root: Path) -> Source:
        """Return the handbook's sections, with queries made of their headings."""
        found = Collector()
        files = tuple(sorted(file for file in root.glob(self.pages) if file.is_file()))
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace")
            if len(text) <= LARGEST and not SKIPPED.search(file.name):
                add_page(found, text, "/".join(file.parts[-2:]), tasks=self.tasks)
        return found.source(self.name, self.domain, self.licence, files)


HANDBOOKS = (
    Handbook("python", "programming", "python3.11-doc", "PSF-2.0", "usr/share/doc/python3.11/html/[dfhilrtu]*/*.html"),
    Handbook(
        "django", "programming", "python-django-doc", "BSD-3-Clause", "usr/share/doc/python-django-doc/html/**/*.html"
    ),
    Handbook("cmake", "programming", "cmake-doc", "BSD-3-Clause", "usr/share/doc/cmake-data/html/[cmpv]*/*.html"),
    Handbook("rust", "programming", "rust-doc", "MIT or Apache-2.0", "usr/share/doc/rust-doc/html/book/*.html"),
    Handbook(
        "postgresql", "databases", "postgresql-doc-15", "PostgreSQL", "usr/share/doc/postgresql-doc-15/html/*.html"
    ),
    Handbook("sqlite", "databases", "sqlite3-doc", "public domain", "usr/share/doc/sqlite3/*.html"),
    Handbook("apache", "administration", "apache2-doc", "Apache-2.0", "usr/share/doc/apache2-doc/manual/en/**/*.html"),
    Handbook(
        "debian_handbook",
        "administration",
        "debian-handbook",
        "CC BY-SA 3.0 (or GPL-2+)",
        "usr/share/doc/debian-handbook/html/en-US/*.html",
    ),
    Handbook("gnome", "desktop", "gnome-user-docs", "CC BY-SA 3.0", "usr/share/help/C/*/*.page", tasks=True),
)
DICTIONARIES: dict[str, tuple[str, Callable[[Path], Source]]] = {
    "wordnet": ("wordnet-base", wordnet),
    "jargon": ("dict-jargon", jargon),
}
PACKAGES = (*(one.package for one in HANDBOOKS), *(package for package, _ in DICTIONARIES.values()))
LEFT_OUT = {
    "dict-gcide": "GPL-3+ alone",
    "dict-foldoc": "GFDL alone",
    "dict-vera": "GFDL alone",
    "git-doc": "GPL-2 alone",
    "debian-policy": "GPL-2+ alone",
    "developers-reference": "GPL-2+ alone",
    "debian-faq": "GPL-2+ alone",
    "anarchism": "GPL-2 alone",
    "gnucash-docs": "GFDL alone",
    "manpages": "many licences, some forbid changed versions",
    "doc-rfc": "not in Debian's main part: forbids changed versions",
    "fortunes": "quotations whose owners are not named",
}


def read_debian(root: Path) -> list[Source]:
    """Return the sources whose packages are installed, or unpacked, below a root folder."""
    found = [one.read(root) for one in HANDBOOKS if any(root.glob(one.pages))]
    present = {"wordnet": "usr/share/wordnet/data.noun", "jargon": "usr/share/dictd/jargon.index"}
    found += [read(root) for name, (_, read) in DICTIONARIES.items() if (root / present[name]).exists()]
    return found


if __name__ == "__main__":
    print(*PACKAGES)
