"""Small models of each kind with random weights, made in memory, as users of PyTorch have them."""

import hashlib

import sentence_transformers
import torch
import transformers
from beside_transformers import random_model
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from sentence_transformers.sparse_encoder.modules import SpladePooling
from tiny_bert import SIZES, VOCABULARY
from tiny_qwen3 import write_qwen3

QUERY = "how do plants make food"
DOCUMENTS = [
    "green plants make food from sunlight, water and air.",
    "unlike cells",
    "the leaf of a plant makes food from light. water is in the air.",
]
PAIRS = [(QUERY, document) for document in DOCUMENTS]


def bert_tokenizer(**options):
    vocabulary = {piece: number for number, piece in enumerate(VOCABULARY)}
    return transformers.BertTokenizer(vocab=vocabulary, model_max_length=64, **options)


def bert_config(**settings):
    return transformers.BertConfig(**SIZES | {"max_position_embeddings": 64, "num_labels": 1} | settings)


def classifier(**settings):
    """Return a BERT with a classification head."""
    return random_model(transformers.BertForSequenceClassification, bert_config(**settings))


def _saved(model, folder):
    model.save_pretrained(folder)
    bert_tokenizer().save_pretrained(folder)
    return str(folder)


def cross_encoder(folder, **settings):
    """Return a CrossEncoder of sentence-transformers."""
    return sentence_transformers.CrossEncoder(_saved(classifier(**settings), folder), device="cpu")


def _encoder(folder) -> Transformer:
    return Transformer(_saved(random_model(transformers.BertModel, bert_config()), folder))


def bi_encoder(folder, *, mode="mean", include_prompt=True, **options):
    """Return a SentenceTransformer."""
    pooling = Pooling(SIZES["hidden_size"], pooling_mode=mode, include_prompt=include_prompt)
    return sentence_transformers.SentenceTransformer(modules=[_encoder(folder), pooling], device="cpu", **options)


def sparse_encoder(folder, *, strategy="max", activation="relu"):
    """Return a SPLADE."""
    model = random_model(transformers.BertForMaskedLM, bert_config())
    body = Transformer(_saved(model, folder), transformer_task="fill-mask")
    pooling = SpladePooling(pooling_strategy=strategy, activation_function=activation)
    return sentence_transformers.SparseEncoder(modules=[body, pooling], device="cpu")


def late_interaction(folder, *, similarity="maxsim", expansion=None, prompts=None, skip=(",", ".")):
    """Return a ColBERT: vectors of 8 dims a token, of length 1, punctuation left out."""
    torch.manual_seed(1)
    dense = Dense(SIZES["hidden_size"], 8, bias=False, activation_function=torch.nn.Identity(),
        module_input_name="token_embeddings", module_output_name="token_embeddings")  # fmt: skip
    body = Transformer(
        _saved(random_model(transformers.BertModel, bert_config()), folder),
        query_length=24,
        document_length=40,
        **({"query_expansion": expansion} if expansion else {}),
    )
    return sentence_transformers.MultiVectorEncoder(
        modules=[
            body,
            dense,
            MultiVectorMask(skiplist_words=list(skip)),
            Normalize(module_input_name="token_embeddings"),
        ],
        similarity_fn_name=similarity,
        prompts=prompts,
        device="cpu",
    )


def causal(folder):
    """Return a Qwen3 with a language model's head, and its tokenizer."""
    write_qwen3(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def fingerprint(model, *tokenizers_used) -> str:
    """Return a hash of an object: weights, buffers, gradients, flags, modes, hooks, settings, tokenizers."""
    found = hashlib.sha256()

    def add(*things):
        for thing in things:
            found.update(repr(thing).encode())

    for name, module in model.named_modules():
        add(name, type(module).__name__, module.training)
        for key, value in sorted(vars(module).items()):
            if key in ("_parameters", "_buffers", "_modules"):
                continue
            if "hook" in key:
                add(key, list(value) if hasattr(value, "__iter__") else value)
            elif key == "config":
                add(key, value.to_json_string(), getattr(value, "_attn_implementation", None))
            elif (
                isinstance(value, (int, float, str, bool, type(None), dict, list, tuple, set))
                and "tokenizer" not in key
            ):
                add(key, value)
            else:
                add(key, type(value).__name__, id(value))
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        add(name, tensor.dtype, tensor.device, tensor.requires_grad, id(tensor), tensor._version)
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        add(None if tensor.grad is None else tensor.grad.tolist())
    for tokenizer in tokenizers_used:
        add(tokenizer.backend_tokenizer.to_str(), tokenizer.padding_side)
    return found.hexdigest()
