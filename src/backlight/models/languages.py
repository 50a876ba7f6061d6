"""Whether a text is in a language that a model does not read: a rule that is light, and hardly ever fires on English.

NOTE [The rule]
A text is in another script if more than half of its letters are (three at least): then the script names the language,
or itself. Else the words are counted that are among a language's most frequent function words and no English words
(`und`, `avec`), each distinct one once; those that stand in names, titles and English texts too (`de`, `la`, `men`)
count half. The language with the highest count is named if that is `LEAST`, a share of `SHARE` of the text's words (of
`WORDS_COUNTED` in a longer text), and `TO_ENGLISH` times the count of English function words. So a text without
function words is never named: nothing is said rather than something wrong. The first `READ` characters are looked at.
How often the rule fires on English, and on other languages: benchmarks/languages.py.
"""

import re
import unicodedata
from collections import Counter
from pathlib import Path

READ = 2000  # characters of a text that are looked at
LEAST = 2.0  # count that another language needs
SHARE = 0.15  # of the words of a text, up to `WORDS_COUNTED`
WORDS_COUNTED = 12  # of a longer text a share of so many is enough
PARTLY = 0.5  # weight of words that stand in names, titles and English too
TO_ENGLISH = 1.5  # as much of the count of English function words is needed
LETTERS_NEEDED = 3  # of another script
WORD = re.compile(r"(?<![\w/.$-])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w/-])")  # no parts of paths, options, names of genes
ENGLISH_WORDS = """
a about after all also an and any are as at be because been before being between both but by can could did do
does down each for from had has have he her his how i if in into is it its just like make many me more most
much my new no not of off on only or other our out over own same she should so some such than that the their
them then there these they this those through to too under until up use used using very was we were what when
where which while who whom whose why will with would you your
"""
ENGLISH = frozenset(ENGLISH_WORDS.split())
FUNCTION_WORDS = {  # ~ before a word that counts half: it stands in names and titles, or in English too
    "German": (
        "und ist nicht ein eine einen einem einer mit für auf dem sich auch werden wird wurde wie wo wer "
        "warum welche welcher welches zum zur bei oder aber nach über durch kann können wir sie ihr ihre "
        "ihren ihrer sind vom beim dass haben wenn noch nur zwischen gibt aus als bitte diese dieser "
        "dieses keine ich ~der ~das ~im ~es ~von ~den"
    ),
    "French": (
        "et est une dans pour avec ce cette ces sont pas plus aux ou où comment pourquoi quel quelle "
        "quels quelles être il elle nous vous leur leurs mais comme c'est n'est qu'est d'un d'une l'on "
        "sans entre votre notre cet était fait peut à veuillez aucun ~que ~qui ~sur ~par ~au ~du ~des "
        "~les ~la ~le ~de ~un ~en"
    ),
    "Spanish": (
        "una con para cómo más pero sus qué cuál cuáles cuándo dónde quién está son fue este esta estos "
        "estas entre cuando muy sin sobre también hay porque puede desde hasta ningún debe seleccione "
        "como ~que ~por ~es ~su ~lo ~al ~se ~y ~los ~las ~el ~la ~de ~del ~un ~en"
    ),
    "Italian": (
        "che è sono perché dove quando quale quali chi cosa gli nel nella della delle degli alla alle dal "
        "dalla più anche questa questo essere stato sulla sul può c'è ogni ~di ~il ~per ~una ~con ~come "
        "~del ~dei ~si ~la ~le ~un ~in"
    ),
    "Portuguese": (
        "não uma para com mais mas ao pelo pela onde quando quem qual quais porque são está seu sua seus "
        "suas isso muito também você ele ela pode um ~que ~por ~como ~os ~as ~dos ~das ~nas ~em ~é ~à ~da "
        "~do ~de ~o ~e ~na"
    ),
    "Dutch": (
        "het een niet zijn voor aan maar ook als bij nog naar wordt worden deze waar wie hoe waarom welke "
        "uit heeft hebben tussen veel moet kunt geen wij ~en ~van ~dat ~op ~met ~er ~om ~hij ~dan ~kan "
        "~wat ~tot ~je ~de ~uw ~te"
    ),
    "Swedish": (
        "och att det ett är av för inte hur vad varför när vilken vilket från ska vid också mellan över "
        "mycket detta dessa blir ~som ~en ~på ~med ~till ~den ~har ~om ~var ~men ~kan ~eller ~efter ~mer "
        "~jag"
    ),
    "Danish or Norwegian": (
        "og det af til ikke hvordan hva hvad hvorfor når hvor hvilken fra eller etter efter også mellom "
        "mellem mye meget dette disse blir bliver jeg ~at ~som ~et ~er ~på ~med ~den ~har ~av ~om ~men "
        "~kan ~skal ~ved"
    ),
    "Polish": (
        "się nie jest że przez dla jak gdzie dlaczego kiedy który która które czy są oraz przy być może "
        "tylko tego jego jej ich był była musi ~i ~w ~na ~to ~z ~do ~od ~po ~co ~ale ~za"
    ),
    "Czech or Slovak": (
        "je jak proč kdy který která které jsou nebo být může jen jeho její jejich byl byla také není sú "
        "nie ako prečo keď pre alebo ~se ~na ~pro ~kde ~od ~do ~po ~při ~ve ~ale ~a ~v ~z"
    ),
    "Turkish": (
        "ve bir bu için ile nasıl neden nerede hangi olarak olan daha çok gibi kadar değil sonra ancak "
        "veya ama her şu olduğu mı ~ne ~kim ~en ~var ~mi ~de ~da"
    ),
    "Finnish": (
        "että kun miten miksi missä mikä mitä kuka ovat oli mutta tai myös kuin joka jotka niin hän vain "
        "sekä ~ja ~on ~ei ~se ~voi ~sen ~ole"
    ),
    "Hungarian": (
        "és az egy hogy nem ezt azt mint hogyan miért hol mikor vagy csak még már kell lehet volt ~van "
        "~ez ~el ~meg ~mi ~ki ~a"
    ),
    "Romanian": (
        "și este pentru nu cum unde când sunt mai sau acest această prin despre dacă ~la ~cu ~pe ~care "
        "~din ~ce ~un ~de ~o ~în"
    ),
    "Indonesian or Malay": (
        "yang dan dengan untuk dari tidak ini itu pada adalah bagaimana mengapa kapan akan bisa dapat "
        "oleh dalam atau juga lebih sudah ~di ~ke ~apa"
    ),
    "Vietnamese": ("là và của có không được trong một những các với này đó như thế nào tại sao ở người ~cho ~khi"),
}
SCRIPTS = {  # the first word of a letter's name in Unicode -> the language, or what is written in it
    "CYRILLIC": "Russian or another language in Cyrillic script",
    "GREEK": "Greek",
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese",
    "ARABIC": "Arabic or another language in Arabic script",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Hindi or another language in Devanagari script",
    "BENGALI": "Bengali",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
    "THAI": "Thai",
    "GEORGIAN": "Georgian",
    "ARMENIAN": "Armenian",
}
CARD = "README.md"
ENGLISH_CODE = "en"
LANGUAGE = re.compile(r"^languages?:[ \t]*\[?([^\]\n]*)\]?[ \t]*\n((?:[ \t]*-[ \t]*\S+[ \t]*\n)*)", re.MULTILINE)
FRONT = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)


def other_language(text: str) -> str | None:
    """Return the language of a text that looks other than English; None where nothing speaks for another.

    >>> other_language("Wie bekommt eine Pflanze ihre Energie?"), other_language("where do plants get energy from?")
    ('German', None)
    """
    text = text[:READ]
    if not text.isascii():
        found = _by_script(text)
        if found:
            return found
    words = [word.lower().replace("’", "'") for word in WORD.findall(text)]
    weights: Counter[str] = Counter()
    for word in set(words):
        for language, weight in LANGUAGES_OF.get(word, ()):
            weights[language] += weight
    if not weights:
        return None
    language, weight = weights.most_common(1)[0]
    english = len(ENGLISH.intersection(words))
    enough = max(LEAST, SHARE * min(len(set(words)), WORDS_COUNTED), TO_ENGLISH * english)
    return language if weight >= enough else None


def _by_script(text: str) -> str | None:
    """Return what most letters of a text say of its language, if they are of another script than Latin."""
    letters = [character for character in text if character.isalpha()]
    scripts = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters if not letter.isascii())
    others = {script: count for script, count in scripts.items() if script in SCRIPTS}
    total = sum(others.values())
    if total < LETTERS_NEEDED or 2 * total <= len(letters):
        return None
    if others.get("HIRAGANA", 0) + others.get("KATAKANA", 0):
        return SCRIPTS["HIRAGANA"]
    return SCRIPTS[max(others, key=others.__getitem__)]


def languages_of(folder: Path) -> tuple[str, ...]:
    """Return the languages that a model's card (README.md) names in its front matter; none where it names none."""
    try:
        front = FRONT.match((folder / CARD).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ()
    found = front and LANGUAGE.search(front[1])
    return tuple(re.findall(r"[A-Za-z][\w-]*", f"{found[1] or ''} {found[2] or ''}")) if found else ()


def _by_word() -> dict[str, tuple[tuple[str, float], ...]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in dict.fromkeys(words.split()):
            weight = PARTLY if word[0] == "~" else 1.0
            found.setdefault(word.removeprefix("~"), []).append((language, weight))
    return {word: tuple(some) for word, some in found.items()}


LANGUAGES_OF = _by_word()
