"""The documented names of models/encoders/bert.py, under the path that programs import them from."""

from backlight.models.encoders.bert import Bert as Bert
from backlight.models.encoders.bert import BertConfig as BertConfig
from backlight.models.encoders.bert import BertHead as BertHead
