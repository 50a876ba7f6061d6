"""Runs of `backlight train` that take a moment."""

from backlight.training.config import config_of
from backlight.training.train import prepare

EPOCHS, STEPS_AN_EPOCH = 4, 5  # 100 images in batches of 20
STEPS = EPOCHS * STEPS_AN_EPOCH
LR = 0.1


def small(out, validation=0.0, **changes):
    """Return settings of a run on 100 images, and as many more as are held out."""
    return config_of(
        {
            "out": str(out),
            "epochs": EPOCHS,
            "batch_size": 20,
            "record_every": 1,
            "model": {"sizes": [8]},
            "data": {"name": "synthetic", "samples": 100 if not validation else 125, "validation": validation},
            "optimizer": {"name": "sgd", "lr": LR},
            **changes,
        }
    )


def seen_in(config, existing="refuse"):
    """Run, and return the run with its records of steps and of evaluations."""
    run, seen = prepare(config, existing), []
    run.train(seen.append)
    return run, [one for one in seen if "loss" in one], [one for one in seen if "evaluation" in one]
