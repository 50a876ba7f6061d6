"""What the tests of loaders share: both sides, their batches as plain values, data sets made of a function."""

import os

import pytest
import torch
import torch.utils.data

import backlight
from backlight import data

SIDES = ((backlight, data), (torch, torch.utils.data))


def plain(value):
    """Return a value with its tensors as lists, so that both sides can be compared; dtypes stay visible."""
    if isinstance(value, (backlight.Tensor, torch.Tensor)):
        return (str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        made = [plain(entry) for entry in value]
        return made if type(value) is list else (type(value).__name__, made)
    return value


def both(function) -> list:
    """Return what a function of (module, its data module) gives on either side, from equal seeds."""
    found = []
    for t, d in SIDES:
        t.manual_seed(13)
        found.append(plain(function(t, d)))
    return found


def assert_gone(pids):
    """The processes have been waited for: not even zombies are left."""
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class Samples:
    """`count` samples, each made by a function of its index."""

    def __init__(self, count, make):
        self.count = count
        self.make = make

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.make(index)


class Gate:
    """Lets a forked worker wait for the test."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        self.opened = False

    def before(self, held):
        """Return a function that returns its index, one of them when the gate is open."""

        def make(index):
            if index == held:
                os.read(self.reader, 1)
            return index

        return make

    def open(self):
        if not self.opened:
            os.write(self.writer, b" ")
        self.opened = True

    def __del__(self):
        os.close(self.reader)
        os.close(self.writer)
