"""What the tests of commands have in common: a tiny cross-encoder, as a folder and as a reranker."""

import pytest
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.explain.reranker import Reranker


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of the model."""
    return str(write_cross_encoder(tmp_path_factory.mktemp("reranker")))


@pytest.fixture
def reranker():
    """The same model in memory."""
    return Reranker(cross_encoder())
