"""Every family gives what transformers gives: logits, states, attentions, slopes, whatever its config asks for."""

import pytest

from backlight.errors import InputError
from backlight.models.families import FAMILIES, family_of


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "gpt2"}, "unknown architecture, gpt2: backlight runs bert"),
        ({}, "unknown architecture, none named: backlight runs bert"),
        (
            {"model_type": "bert", "architectures": ["BertForTokenClassification"]},
            "unknown architecture, BertForTokenClassification: of bert backlight runs BertForSequence",
        ),
    ],
)
def test_an_unknown_architecture_names_the_known_ones_and_the_extra(settings, said):
    with pytest.raises(InputError, match=said) as caught:
        family_of("folder", settings)
    assert all(hint in str(caught.value) for hint in ('pip install "backlight[torch]"', 'engine="torch"'))
    assert "\n" not in str(caught.value)


def test_a_family_knows_which_models_have_a_head():
    bert = family_of("folder", {"model_type": "bert"})
    assert bert is FAMILIES["bert"]
    assert bert.has_head({"architectures": ["BertForSequenceClassification"]})
    assert not bert.has_head({"architectures": ["BertModel"]}) and not bert.has_head({})
