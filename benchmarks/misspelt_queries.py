"""Queries with the typos of people, for measurements: slips on the keyboard, and words that are often misspelt."""

import re

import numpy as np

KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
WORD = re.compile(r"[A-Za-z]{4,}")  # what is misspelt
SOUNDS = """
ie-ei ei-ie ph-f tion-sion ance-ence ence-ance ible-able able-ible mm-m ss-s cc-c ll-l tt-t ary-ery er-or ant-ent
ous-us sc-s qu-kw y-i ea-ee ck-k
"""  # spelt as they sound
COMMON = """
receive-recieve definitely-definately separate-seperate believe-beleive achieve-acheive government-goverment
environment-enviroment occurred-occured beginning-begining necessary-neccessary different-diffrent disease-desease
people-poeple which-wich their-thier because-becuase friend-freind until-untill tomorrow-tommorow address-adress
argument-arguement calendar-calender foreign-foriegn weird-wierd knowledge-knowlege language-langauge library-libary
maintenance-maintainance medicine-medecine occasion-ocasion original-orignal particular-perticular possible-posible
probably-probly publicly-publically really-realy recommend-reccomend restaurant-restaraunt rhythm-rythm
schedule-schedual science-sience similar-similiar successful-succesful surprise-suprise symptoms-symptons
temperature-temprature through-throught treatment-treatement truly-truely university-univeristy vaccine-vacine
wednesday-wensday country-contry century-centuary president-presedent population-populaton famous-famouse
written-writen known-knwon example-exemple between-betwen important-importent immunity-imunity patients-pateints
directory-direcotry current-currrent commands-comands specific-specfic inherited-inhereted syndrome-sindrome
symptom-symptem created-creatd development-developement first-frist during-durring
"""
PHONETIC = tuple(tuple(pair.split("-")) for pair in SOUNDS.split())
MISSPELT = dict(pair.split("-") for pair in COMMON.split())


def slips(query: str, count: int = 2, seed: int = 0) -> str:
    """Return a query with `count` of its words misspelt as people misspell them, words of `MISSPELT` first.

    >>> slips("why do people believe in it"), slips("plant energy", 1)
    ('why do poeple beleive in it', 'plat energy')
    """
    rng = np.random.default_rng([seed, len(query), sum(map(ord, query))])
    words = [word.span() for word in WORD.finditer(query)]
    rng.shuffle(words)
    words.sort(key=lambda place: query[slice(*place)].lower() not in MISSPELT)
    for start, end in sorted((tuple(place) for place in words[:count]), reverse=True):
        word = query[start:end]
        query = query[:start] + (MISSPELT.get(word.lower()) or slip(word, rng)) + query[end:]
    return query


def slip(word: str, rng: np.random.Generator) -> str:
    """Return a word with a neighbour's key, a letter doubled, left out or swapped, or a part spelt as it sounds."""
    kind, place = int(rng.integers(5)), int(rng.integers(1, len(word)))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    if kind == 0:
        near = neighbours(letter.lower())
        return before + near[int(rng.integers(len(near)))] + after
    if kind == 1:
        return before + letter * 2 + after
    if kind == 2:
        return before[:-1] + letter + before[-1] + after
    sounds = [(one, other) for one, other in PHONETIC if one in word[1:].lower()]
    if kind == 3 or not sounds:
        return before + after
    one, other = sounds[int(rng.integers(len(sounds)))]
    place = word.lower().index(one, 1)
    return word[:place] + other + word[place + len(one) :]


def neighbours(letter: str) -> str:
    """Return the letters whose keys touch that of a letter.

    >>> neighbours("a"), neighbours("g")
    ('qwszx', 'rtyfhvbn')
    """
    row, column = next((row, keys.index(letter)) for row, keys in enumerate(KEYS) if letter in keys)
    rows = KEYS[max(row - 1, 0) : row + 2]
    near = "".join(keys[max(column - 1, 0) : column + 2] for keys in rows)
    return near.replace(letter, "")
