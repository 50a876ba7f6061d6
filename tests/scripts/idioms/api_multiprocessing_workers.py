"""Worker processes that write into a shared tensor (Hogwild's pattern)."""

import torch
import torch.multiprocessing as mp


def add(rank, total):
    total[rank] += rank + 1


def main():
    total = torch.zeros(2).share_memory_()
    processes = [mp.get_context("fork").Process(target=add, args=(rank, total)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(total.tolist(), [process.exitcode for process in processes])
    mp.start_processes(add, args=(total,), nprocs=2, start_method="fork")
    print(total.tolist())


if __name__ == "__main__":
    main()
