"""Batches: score and explain all pairs of a data set, in parts that survive a kill, and sum up what was found."""

from backlight.explain.batch.inputs import Reading
from backlight.explain.batch.rows import Columns
from backlight.explain.batch.running import Batch, BatchProgress, run_batch
from backlight.explain.batch.settings import Settings
