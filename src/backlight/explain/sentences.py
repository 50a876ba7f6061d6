"""Sentences of a text.

NOTE [What a sentence is]
It ends after `.`, `!`, `?` or `…`, with the quotes and brackets that close there, if white space follows and what comes
then does not begin in lower case; after `。`, `！` and `？` wherever they stand; and at an empty line. A full stop ends
nothing after a title or an abbreviation that a name or number follows (`Dr.`, `Fig.`, `e.g.`), after a single capital
(`J. Smith`) and after capitals with stops (`U.S.`). Stops inside numbers (`3.5`) have no white space after them. What
the rule gets wrong: `vitamin C. It …` stays one sentence, and so does one that begins in lower case.
"""

import re

END = re.compile(
    r"""
    (?P<wide>[。！？]+[」』”’）]*)              # no white space is needed
    | (?P<mark>[.!?…]+)["'”’»)\]]*(?=\s)        # the marks of a sentence's end, and what closes with it
    | (?P<line>\n[ \t\r]*\n)                    # an empty line
    """,
    re.VERBOSE,
)
LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*$")
INITIALS = re.compile(
    r"(?:[^\W\d_]\.)*[A-ZÀ-ÖØ-Þ]|(?:[^\W\d_]\.)+[^\W\d_]"
)  # J. or U.S. or e.g., without the last stop
ABBREVIATIONS = re.compile(
    "mr|mrs|ms|dr|prof|rev|hon|gen|col|capt|lt|sgt|sen|rep|gov|pres|st|mt|ft|jr|sr|messrs|mme|mlle|vs|cf|eg|ie|viz|al|"
    "ca|approx|est|figs?|eqs?|nos?|vols?|pp|ch|sec|dept|inc|ltd|corp|co|bros|univ|jan|feb|mar|apr|jun|jul|aug|sept?|"
    "oct|nov|dec",
    re.IGNORECASE,
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return first and last + 1 character of each sentence, without the white space around it.

    >>> text = 'Dr. J. Smith ran 3.5 km. "Why?" Nobody knows! (See Fig. 2.) So it goes'
    >>> [text[a:b] for a, b in sentence_spans(text)]
    ['Dr. J. Smith ran 3.5 km.', '"Why?"', 'Nobody knows!', '(See Fig. 2.)', 'So it goes']
    """
    ends = [found.end() for found in END.finditer(text) if _ends(text, found)]
    spans = []
    for start, end in zip([0, *ends], [*ends, len(text)]):
        part = text[start:end]
        if part.strip():
            spans.append((start + len(part) - len(part.lstrip()), start + len(part.rstrip())))
    return spans


def _ends(text: str, found: re.Match) -> bool:
    """Return whether a sentence ends at a mark."""
    if found["mark"] is None:
        return True
    follows = text[found.end() :].lstrip()
    if follows[:1].islower():
        return False
    if found["mark"] != ".":
        return True
    word = LAST_WORD.search(text, 0, found.start())[0]
    return not (INITIALS.fullmatch(word) or ABBREVIATIONS.fullmatch(word))
