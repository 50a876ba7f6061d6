"""The lens on graphs of complex numbers: recorded, drawn, replayed, and without findings of its own making."""

import pytest
from under_the_doctor import findings_of

import backlight
from backlight import lens
from backlight.cli.main import main

PROGRAM = """import torch

w = torch.nn.Parameter(torch.ones(2, 3, dtype=torch.cfloat) * (1 + 1j))
optimizer = torch.optim.SGD([w], lr=0.1)
x = torch.arange(3.0)
for _ in range(3):
    optimizer.zero_grad()
    z = torch.fft.fft(x) * w
    loss = (z.abs() ** 2).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("command", ["graph", "replay", "doctor"])
def test_commands_take_programs_with_complex_numbers(command, tmp_path, capsys):
    script = tmp_path / "spectra.py"
    script.write_text(PROGRAM)
    assert main([command, "--engine", "backlight", str(script)]) == 0
    shown = "".join(capsys.readouterr())
    assert "Traceback" not in shown
    assert {"graph": "complex64", "replay": "w.grad", "doctor": "no findings"}[command] in shown


def test_the_doctor_finds_nothing_in_a_healthy_complex_program():
    assert findings_of(PROGRAM, "backlight", strict=True) == []


def test_a_record_of_a_complex_graph_says_its_dtypes():
    w = backlight.tensor([1 + 2j, 3j], requires_grad=True)
    with lens.watch() as seen:
        (w * w).abs().sum().backward()
    assert "complex64" in repr(seen.record.nodes)
