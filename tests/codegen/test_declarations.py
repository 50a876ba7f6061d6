"""What a declaration of an op refuses."""

import pytest

from backlight.codegen.declaration import Array, Op
from backlight.errors import BacklightError


def test_no_input_is_called_as_the_gradient_of_the_output():
    def named_like_a_gradient(xp, grad: Array, scale: Array):
        return grad * scale

    declared = Op(named_like_a_gradient)
    with pytest.raises(BacklightError, match="an input of named_like_a_gradient must not be called grad"):
        declared.derivative("scale", formula="grad")


def test_a_derivative_names_inputs_that_are_there():
    def scaled(xp, input: Array, factor: float):
        return input * factor

    with pytest.raises(BacklightError, match=r"scaled has no array inputs \['factor'\]: it has \['input'\]"):
        Op(scaled).derivative("factor", formula="grad")
