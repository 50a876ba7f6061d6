"""The documented names of models/encoders/bert.py, under the path that programs import them from."""

from backlight.models.encoders.bert import Bert, BertConfig, BertHead

__all__ = ["Bert", "BertConfig", "BertHead"]
