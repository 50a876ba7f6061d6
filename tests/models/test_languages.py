"""Other languages are named, English of any kind is not, and only models known to read English alone speak of it."""

import json

import pytest
from paths import ROOT
from tiny_bert import write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.languages import READ, languages_of, other_language

OTHERS = {
    "German": ["Wie bekommt eine Pflanze ihre Energie?", "wer hat das Telefon erfunden und wann"],
    "French": ["Comment une plante obtient-elle son énergie ?", "pourquoi le ciel est bleu"],
    "Spanish": ["¿Cómo obtienen las plantas su energía?", "cuál es la capital de este país"],
    "Italian": ["Come si può fare il pane in casa?", "perché il cielo è blu"],
    "Portuguese": ["Por que o céu é azul quando não chove?", "onde fica a cidade mais antiga"],
    "Dutch": ["Hoe krijgt een plant zijn energie?", "waarom is de lucht niet groen"],
    "Swedish": ["Hur får växter sin energi och varför är de gröna?"],
    "Polish": ["Dlaczego niebo jest niebieskie?", "jak działa silnik i co to jest"],
    "Turkish": ["Gökyüzü neden mavi ve nasıl oluşur?"],
    "Russian or another language in Cyrillic script": ["почему небо голубое"],
    "Greek": ["Γιατί ο ουρανός είναι μπλε;"],
    "Japanese": ["植物はどこからエネルギーを得ますか"],
    "Chinese": ["植物从哪里获得能量"],
    "Korean": ["식물은 에너지를 어디서 얻나요"],
    "Arabic or another language in Arabic script": ["من أين تحصل النباتات على الطاقة"],
}
ENGLISH = [
    "where does a plant get its energy from?",
    "capital of Peru",
    "Charles de Gaulle airport",
    "Leonardo de la Cruz",
    "Ludwig van Beethoven and the Missa solemnis",
    "Die Hard",
    "Hasta la vista, baby",
    "São Tomé and Príncipe",
    "el niño southern oscillation",
    "El Salvador, Los Angeles, La Paz",
    "what does und mean in German?",
    "déjà vu",
    "crème brûlée recipe",
    "α-synuclein aggregation",
    "β-lactam",
    "IL-6 TNF-α levels",
    "GLI3 gene in limb development",
    "am start -n com.android.settings/.Settings",
    "tar -cf archive.tar --exclude=.git dir",
    "def f(x): return x",
    "az vm list --output table",
    "ssh -p 22 user@host",
    "SELECT name FROM users WHERE id = 3;",
    "rabies",
    "vitamin D",
    "",
    "12:30",
    "naïve Bayes",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
]


@pytest.mark.parametrize("language, text", [(name, text) for name, texts in OTHERS.items() for text in texts])
def test_a_question_in_another_language_is_named(language, text):
    assert other_language(text) == language
    assert other_language(text.upper()) in (language, None)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_of_any_kind_is_not_taken_for_another_language(text):
    assert other_language(text) is None


def test_no_passage_page_or_word_of_our_own_is_taken_for_another_language():
    files = [*(ROOT / "examples" / "passages").glob("*.txt"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    words = [line.split() for line in lines]
    threes = [" ".join(own[place : place + 3]) for own in words for place in range(0, max(len(own) - 2, 0), 3)]
    assert len(files) > 20 and len(threes) > 5000
    assert [text for text in (*lines, *threes) if other_language(text)] == []


def test_only_the_beginning_of_a_text_is_looked_at():
    assert (
        other_language("this is an English text of some length. " * READ + "das ist nicht wahr und wird es nie") is None
    )


@pytest.mark.parametrize(
    "card, languages",
    [
        ("---\nlanguage: en\n---\n", ("en",)),
        ("---\nlicense: mit\nlanguage:\n- en\n- de\ntags:\n- x\n---\n# A\n", ("en", "de")),
        ("---\nlanguage: [en, fr]\n---\n", ("en", "fr")),
        ('---\nlanguage: "en"\nlicense: mit\n---\n', ("en",)),
        ("---\nlicense: mit\n---\nlanguage: en\n", ()),
        ("language: en\n", ()),
    ],
)
def test_a_card_says_which_languages_its_model_reads(card, languages, tmp_path):
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    assert languages_of(tmp_path) == languages


def test_a_folder_without_a_card_says_nothing(tmp_path):
    assert languages_of(tmp_path) == ()


GERMAN, QUERY = "Die Pflanze bekommt ihre Energie von der Sonne und nicht vom Boden.", "how do plants make food"


@pytest.mark.parametrize("card, speaks", [("language: en", True), ("language: [en, de]", False), ("tags: x", False)])
def test_only_a_model_known_to_read_english_alone_speaks_of_it(card, speaks, tmp_path, capsys):
    folder = write_cross_encoder(tmp_path / "model")
    (folder / "README.md").write_text(f"---\n{card}\n---\n", encoding="utf-8")
    ranking = Reranker.from_pretrained(folder).rank(GERMAN, ["plants make food", GERMAN], names=["a", "b"])
    assert {(one.text, one.language) for one in ranking.other_languages} == (
        {("the query", "German"), ("b", "German")} if speaks else set()
    )
    page = tmp_path / "page.html"
    for command in ("rank", "explain"):
        arguments = [command, GERMAN, "plants make food", GERMAN, "--model", str(folder)]
        assert main([*arguments, "--json", "--html", str(page)]) == 0
        said = capsys.readouterr()
        found = json.loads(said.out)
        others = (found["meta"] if command == "rank" else found)["other_languages"]
        assert (len(others) == 2, "the query looks German" in said.err) == (speaks, speaks)
        assert ("model reads English only" in page.read_text(encoding="utf-8")) == speaks


@pytest.mark.parametrize(
    "command",
    [["compare", GERMAN, "a leaf", GERMAN], ["matrix", GERMAN, "a leaf"], ["what-if", GERMAN, "a leaf", "--add", "x"]],
)
def test_commands_on_pairs_say_it_too(command, tmp_path, capsys):
    folder = write_cross_encoder(tmp_path / "model")
    for card, said in ("language: en", True), ("tags: x", False):
        (folder / "README.md").write_text(f"---\n{card}\n---\n", encoding="utf-8")
        assert main([*command, "--model", str(folder), "--json"]) == 0
        assert ("the query looks German" in capsys.readouterr().err) == said


def test_the_built_in_model_reads_english_only():
    reranker = Reranker.from_pretrained()
    assert reranker.languages == ("en",)
    assert reranker.rank(QUERY, ["Plants make food."]).other_languages == ()


def test_a_model_with_a_threshold_says_when_no_document_reaches_it(tmp_path, capsys):
    folder = write_cross_encoder(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    page, arguments = tmp_path / "page.html", ["a leaf", "plants make food", "a cell", "--model", str(folder)]
    for threshold, answered in ((None, None), (0.0, True), (1.1, False)):
        said = {} if threshold is None else {"backlight_threshold": threshold}
        (folder / "config.json").write_text(json.dumps(settings | said))
        ranking = Reranker.from_pretrained(folder).rank("a leaf", ["plants make food", "a cell"])
        assert (ranking.threshold, ranking.answered) == (threshold, answered)
        for command in ("rank", "explain"):
            assert main([command, *arguments, "--json", "--html", str(page)]) == 0
            found, heard = capsys.readouterr()
            written = json.loads(found)
            assert (written["meta"] if command == "rank" else written)["threshold"] == threshold
            assert ("perhaps nothing here answers" in heard) == (answered is False)
            assert ("perhaps nothing here answers the query:" in page.read_text()) == (answered is False)
    (folder / "config.json").write_text(json.dumps(settings | {"backlight_threshold": "high"}))
    with pytest.raises(InputError, match=r"backlight_threshold in .* must be a number, got 'high'"):
        Reranker.from_pretrained(folder)
