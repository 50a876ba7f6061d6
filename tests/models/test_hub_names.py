"""A name on Hugging Face's hub is found in its cache; nothing is downloaded."""

import pytest
from tiny_bert import write_cross_encoder

from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.checkpoint import find_model

COMMIT = "0123abc"


def write_cached(cache, name: str):
    """Write a model as huggingface_hub caches it; return its folder."""
    kept = cache / f"models--{name.replace('/', '--')}"
    folder = kept / "snapshots" / COMMIT
    write_cross_encoder(folder)
    (kept / "refs").mkdir()
    (kept / "refs/main").write_text(COMMIT)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path / "hub"


def test_a_cached_model_is_found_by_its_name(cache):
    folder = write_cached(cache, "someone/tiny-reranker")
    assert find_model("someone/tiny-reranker") == folder
    reranker = Reranker.from_pretrained("someone/tiny-reranker")
    assert reranker.name == "someone/tiny-reranker"
    assert reranker.predict(("a leaf", "food")).shape == ()


def test_names_of_sentence_transformers_need_no_owner(cache):
    folder = write_cached(cache, "cross-encoder/tiny")
    assert find_model("tiny") == folder


def test_the_cache_itself_may_be_named(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    folder = write_cached(tmp_path / "elsewhere", "a/b")
    assert find_model("a/b") == folder


def test_the_snapshot_of_the_main_branch_is_taken(cache):
    folder = write_cached(cache, "a/b")
    (folder.parent / "0000").mkdir()
    assert find_model("a/b") == folder


def test_a_model_that_is_not_cached_is_to_be_downloaded_beforehand(cache):
    with pytest.raises(InputError, match=r"holds no model of that name.* hf download cross-encoder/not-there$"):
        Reranker.from_pretrained("cross-encoder/not-there")


def test_half_a_download_is_named(cache):
    (write_cached(cache, "a/b") / "config.json").unlink()
    with pytest.raises(InputError, match=r"has no config\.json: download the whole model, hf download a/b"):
        find_model("a/b")
