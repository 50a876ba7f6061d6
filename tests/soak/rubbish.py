"""Values that belong in no slot and no argument, for the programs beside this one."""

import contextlib
import gc
import sys


class Unfriendly:
    """An object whose comparisons, lengths and conversions fail or are absurd."""

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__

    def __len__(self):
        return 2**31

    def __index__(self):
        return 2**70

    def __float__(self):
        raise ValueError("no float")

    def __getattr__(self, name):
        raise KeyError(name)


class Breaking:
    """A storage whose version deletes what others hold."""

    def __init__(self, victims):
        self.victims = victims

    @property
    def version(self):
        for victim in self.victims:
            for name in ("_data", "_edge", "_storage", "edges", "input", "other", "out"):
                with contextlib.suppress(Exception):
                    delattr(victim, name)
        gc.collect()
        return 0


def arrays(np, rng):
    """Return an array of odd dtype, shape, strides or flags."""
    shape = rng.choice([(), (0,), (1,), (3,), (2, 3), (3, 2), (2, 0, 3), (1,) * 8, (7, 5), (2, 3, 4), (2, 1, 4, 4)])
    kind = rng.choice(["f4", "f8", "i8", "i4", "u1", "?", ">f4", ">f8", "f2", "c8", "O", "U3", "u4", "M8[s]"])
    made = np.zeros(shape, kind) if kind in "OU3M8[s]" else np.ones(shape).astype(kind)
    change = rng.randrange(6)
    if change == 0:
        made.flags.writeable = False
    elif change == 1 and made.ndim:
        made = made[..., ::-1]
    elif change == 2:
        made = made.T
    elif change == 3:
        made = np.broadcast_to(made, (3, *made.shape))
    elif change == 4 and made.nbytes and kind in ("f4", "f8", "i8"):
        memory = np.zeros(made.nbytes + 1, np.uint8)[1:]
        made = memory.view(kind).reshape(made.shape)
    return made


def rubbish(np, rng, others=()):
    """Return something that belongs in no slot."""
    plain = [
        None,
        (),
        [],
        {},
        0,
        -1,
        1,
        2**31,
        2**62,
        2**63,
        2**70,
        -(2**63),
        1.5,
        float("nan"),
        True,
        "",
        "text",
        b"bytes",
    ]
    odd = [
        object(),
        Unfriendly(),
        int,
        len,
        (None,),
        (None,) * 9,
        (0, 0),
        [None],
        np.float32(1),
        np.float64(2),
        np.int64(3),
    ]
    odd += [np.dtype("f4"), Ellipsis, NotImplemented, lambda *args: None, (1, (2, (3,))), range(3), sys]
    pick = rng.random()
    if pick < 0.3:
        return rng.choice(plain)
    if pick < 0.6:
        return rng.choice(odd)
    if pick < 0.75 and others:
        return rng.choice(others)
    if pick < 0.8 and others:
        return tuple(rng.choices(others, k=rng.randrange(5)))
    return arrays(np, rng)
