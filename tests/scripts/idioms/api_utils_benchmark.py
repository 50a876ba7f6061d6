"""A timer."""

import torch
import torch.utils.benchmark as benchmark

timer = benchmark.Timer(
    stmt="x.sum()",
    setup="x = torch.ones(10)",
    globals={"torch": torch},
    num_threads=1,
    label="sums",
    sub_label="small",
    description="x",
)
found = timer.timeit(5)
print(type(found).__name__, found.number_per_run, found.mean > 0, len(found.times), found.task_spec.label)
many = benchmark.Timer("y + 1", globals={"y": 1}).blocked_autorange(min_run_time=0.001)
print(many.median > 0, many.number_per_run >= 1)
