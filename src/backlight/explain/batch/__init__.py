"""Batches: score and explain every pair of a data set, resumably, and write a summary."""

from backlight.explain.batch.inputs import Reading
from backlight.explain.batch.rows import Columns
from backlight.explain.batch.running import Batch, BatchProgress, run_batch
from backlight.explain.batch.settings import Settings
