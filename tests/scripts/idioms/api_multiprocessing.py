"""Tensors and functions through `torch.multiprocessing`."""

import torch
import torch.multiprocessing as mp


def main():
    x = torch.ones(2)
    print(x.is_shared(), x.share_memory_() is x, x.is_shared(), x[:1].is_shared())
    model = torch.nn.Linear(1, 1)
    model.share_memory()
    print(all(p.is_shared() for p in model.parameters()))
    print(
        mp.get_start_method(allow_none=True) in (None, "fork", "spawn", "forkserver"),
        mp.get_sharing_strategy(),
        sorted(mp.get_all_sharing_strategies()),
    )
    queue = mp.get_context("fork").Queue()
    queue.put({"x": torch.arange(3.0)})
    print(queue.get())
    print(mp.cpu_count() > 0, mp.Process.__name__, mp.current_process().name)


if __name__ == "__main__":
    main()
