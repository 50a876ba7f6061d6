"""Pairs a second on a GPU: scoring and saliency, backlight's kernels and its PyTorch path beside PyTorch itself.

    python benchmarks/gpu.py [--shapes MiniLM-L6,BERT-base] [--pairs 32,1000] [--dtypes float32,tf32,bfloat16]

Models have the sizes of MiniLM-L6 and BERT-base, and random weights, which make no difference to the time; a pair has
20 to 256 tokens. Saliency is the gradient of the score for the embeddings, back on the processor. PyTorch: *padded*, 32
pairs at a time in their order, as users do; *varlen*, all tokens end to end with `varlen_attn` (bfloat16 only);
*compiled*, sorted, 32 at a time, each layer by `torch.compile`. Rounds alternate; shown are medians with quartiles, and
what share of the GPU's peak the median is, where the peak is known.

No figure of this script is in the documentation: it was written without a GPU. Where there is none it says so, and
exits with 2.
"""

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pairs as work
from quiet import library

SHAPES = {"MiniLM-L6": (384, 6, 12, 1536), "BERT-base": (768, 12, 12, 3072)}  # hidden, layers, heads, intermediate
PEAKS = {  # TFLOP/s, dense, by a part of the GPU's name
    "H100": {"float32": 67, "tf32": 494, "bfloat16": 989},
    "H200": {"float32": 67, "tf32": 494, "bfloat16": 989},
    "A100": {"float32": 19.5, "tf32": 156, "bfloat16": 312},
}
ROUNDS, WARM_UP, TOGETHER = 7, 2, 32
Call = Callable[[], object]


def main() -> int:
    """Print the table; return 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--pairs", default="32,1000")
    parser.add_argument("--dtypes", default="float32,tf32,bfloat16")
    given = parser.parse_args()
    torch = library("torch")
    if not torch.cuda.is_available():
        print("no GPU is there, so nothing was measured", file=sys.stderr)
        return 2
    gpu = torch.cuda.get_device_name()
    print(f"{gpu}, PyTorch {torch.__version__}: pairs a second, median (quartiles), share of peak")
    for shape in given.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder), shape)
            for dtype in given.dtypes.split(","):
                for count in map(int, given.pairs.split(",")):
                    for line in rows(Path(folder), shape, dtype, count, gpu, "cuda"):
                        print(line, flush=True)
    return 0


def rows(folder: Path, shape: str, dtype: str, count: int, gpu: str, device: str) -> list[str]:
    """Return a line for each way of scoring, and of saliency."""
    ids = work.ragged(count)
    found = []
    for saliency in (False, True):
        times: dict[str, list[float]] = {}
        ways, why = {}, {}
        for name, make in WAYS.items():
            try:
                ways[name] = make(folder, dtype, ids, saliency, device)
                for _ in range(WARM_UP):
                    ways[name]()
            except Exception as problem:  # a way that this GPU, or this dtype, does not have
                ways.pop(name, None)
                why[name] = f"{type(problem).__name__}: {problem}".split("\n")[0][:100]
        for _ in range(ROUNDS):
            for name, call in ways.items():
                times.setdefault(name, []).append(seconds(call, device))
        what = f"{shape}, {dtype}, {count} pairs, {'saliency' if saliency else 'scoring'}"
        most = next((peak[dtype] for part, peak in PEAKS.items() if part in gpu), None)
        work_done = flops(shape, [len(one) for one in ids], saliency)
        found += [f"{what:48} {name:24} {text_of(own, count, work_done, most)}" for name, own in times.items()]
        found += [f"{what:48} {name:24} not run: {said}" for name, said in why.items()]
    return found


def text_of(times: Sequence[float], count: int, work_done: float, most: float | None) -> str:
    """Return pairs a second, with quartiles and the share of the peak."""
    low, middle, high = statistics.quantiles(times, n=4)
    share = f", {work_done / middle / most / 1e10:.1f} %" if most else ""
    return f"{count / middle:9.1f} ({count / high:.1f}–{count / low:.1f}){share}"


def flops(shape: str, lengths: Sequence[int], saliency: bool) -> float:
    """Return the arithmetic of the products: forward, and backward for inputs alone; no weight gets a gradient."""
    hidden, layers, _, inner = SHAPES[shape]
    linear = sum(lengths) * layers * 2 * (4 * hidden * hidden + 2 * hidden * inner)
    attention = sum(length * length for length in lengths) * layers * 4 * hidden
    return 2 * linear + 3.5 * attention if saliency else linear + attention


def seconds(call: Call, device: str) -> float:
    """Return how long a call takes, all that it started on the GPU included."""
    wait = library("torch").cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - start


def write_model(folder: Path, shape: str) -> None:
    """Write a cross-encoder of a shape, with random weights and MiniLM's tokenizer."""
    torch, transformers = library("torch"), library("transformers")
    hidden, layers, heads, inner = SHAPES[shape]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner, num_labels=1
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    source = library("backlight.models.checkpoint").find_model(work.MODEL)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())


def own_pairs(ids: Sequence[np.ndarray]) -> object:
    """Return pairs as one batch of backlight's."""
    batches = work.our_batches(ids)
    return library("backlight.models.pairs").PairBatch.of([pair for batch in batches for pair in batch.pairs])


def by_backlight(options: dict, folder: Path, ids: Sequence[np.ndarray], saliency: bool) -> Call:
    """Return what runs pairs by backlight, as many at once as it gives itself."""
    scorer = library("backlight").Reranker.from_pretrained(folder, **options).scorer
    pairs, scoring = own_pairs(ids).pairs, library("backlight.models.scoring")
    of = library("backlight.models.pairs").PairBatch.of
    batches = [of(some) for some in scoring.passes(pairs, tokens=scorer.tokens_a_pass)]
    run = scorer.gradients if saliency else scorer.score
    return lambda: [run(batch) for batch in batches]


def kernels(folder: Path, dtype: str, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """Backlight's kernels."""
    return by_backlight({"device": device, "dtype": dtype if device != "cpu" else None}, folder, ids, saliency)


def torch_path(folder: Path, dtype: str, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """Backlight's PyTorch path."""
    set_tf32(dtype)
    own = "float32" if dtype == "tf32" else dtype
    return by_backlight({"engine": "torch", "device": device, "dtype": own}, folder, ids, saliency)


def loaded(folder: Path, dtype: str, device: str) -> object:
    """Return transformers' model."""
    torch, transformers = library("torch"), library("transformers")
    set_tf32(dtype)
    kept = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=kept)
    return model.to(device).eval().requires_grad_(False)


def set_tf32(dtype: str) -> None:
    """Let PyTorch's products round float32 to TF32, or not."""
    library("torch").set_float32_matmul_precision("high" if dtype == "tf32" else "highest")


def rectangles(model: object, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """Return what runs pairs padded, 32 at a time in the order given."""
    torch = library("torch")
    groups = [work.rectangle(ids[start : start + TOGETHER]) for start in range(0, len(ids), TOGETHER)]

    def run() -> list:
        found = []
        with torch.set_grad_enabled(saliency):
            for group in groups:
                words, types, mask = (one.to(device) for one in group)
                leaf = model.get_input_embeddings()(words).detach().requires_grad_(saliency)
                scores = model(inputs_embeds=leaf, token_type_ids=types, attention_mask=mask).logits[:, 0]
                found.append((torch.autograd.grad(scores.sum(), leaf)[0] if saliency else scores).float().cpu())
        return found

    return run


def padded(folder: Path, dtype: str, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """PyTorch, padded."""
    return rectangles(loaded(folder, dtype, device), ids, saliency, device)


def compiled(folder: Path, dtype: str, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """PyTorch, sorted by length, padded, each layer compiled."""
    model = loaded(folder, dtype, device)
    for layer in model.base_model.encoder.layer:
        layer.forward = library("torch").compile(layer.forward, dynamic=True)
    return rectangles(model, sorted(ids, key=len), saliency, device)


def varlen(folder: Path, dtype: str, ids: Sequence[np.ndarray], saliency: bool, device: str) -> Call:
    """PyTorch, all tokens end to end."""
    torch, transformers = library("torch"), library("transformers")
    attend = importlib.import_module("torch.nn.attention.varlen").varlen_attn
    if dtype != "bfloat16":
        raise ValueError("varlen_attn has no float32")
    model, lengths = loaded(folder, dtype, device), [len(one) for one in ids]
    ends = torch.tensor(np.cumsum([0, *lengths]), dtype=torch.int32, device=device)
    longest = max(lengths)

    def attention(module, query, key, value, mask, **options) -> tuple:
        rows = (one[0].transpose(0, 1).contiguous() for one in (query, key, value))
        return attend(*rows, ends, ends, longest, longest)[None], None

    transformers.AttentionInterface.register("benchmark_varlen", attention)
    model.config._attn_implementation = "benchmark_varlen"
    core, starts = model.base_model, ends[:-1].long()
    parts = ids, [work.segments(one) for one in ids], [np.arange(length) for length in lengths]
    host = [torch.from_numpy(np.concatenate(part))[None] for part in parts]

    def run() -> object:
        with torch.set_grad_enabled(saliency):
            words, types, positions = (one.to(device) for one in host)
            leaf = model.get_input_embeddings()(words).detach().requires_grad_(saliency)
            states = core.embeddings(inputs_embeds=leaf, token_type_ids=types, position_ids=positions)
            for layer in core.encoder.layer:
                states = layer(states, None)
            scores = model.classifier(core.pooler(states[0, starts][:, None]))[:, 0]
            return (torch.autograd.grad(scores.sum(), leaf)[0] if saliency else scores).float().cpu()

    return run


WAYS = {
    "backlight's kernels": kernels,
    "backlight on PyTorch": torch_path,
    "PyTorch, padded": padded,
    "PyTorch, varlen": varlen,
    "PyTorch, compiled": compiled,
}

if __name__ == "__main__":
    sys.exit(main())
