"""`Reranker`: load a model, score pairs, rank documents, explain scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from backlight.adapters.cupy_device import cupy_device
from backlight.adapters.torch_models.folders import torch_scorer
from backlight.adapters.torch_models.recognition import Options, scorer_of
from backlight.errors import InputError
from backlight.explain.attribution import Attribution, OtherLanguage, Ranking
from backlight.explain.comparison import MEASURED, Comparison, WhatIf, compare, what_if
from backlight.explain.edits import Edit
from backlight.explain.faithfulness.saved_choice import read_choice
from backlight.explain.methods.interactions import Interactions, matrix
from backlight.explain.methods.logit_lens import BuildUp, build_up
from backlight.explain.methods.registry import DEFAULT
from backlight.explain.methods.terms import TermWeights, term_weights
from backlight.explain.ranking import explain_document, rank_candidates, scores_in_windows
from backlight.explain.windows import BEST, MAX_WINDOWS
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import find_model
from backlight.models.cuda.scorers import on_cuda
from backlight.models.fused import FusedCrossEncoder
from backlight.models.languages import ENGLISH_CODE, languages_of, other_language
from backlight.models.pairs import PairBatch, reads_misspellings
from backlight.models.ranker import load_ranker, threshold_of
from backlight.models.retrieval.index import BY_WORDS, NONE, OWN_RETRIEVER, Index, check_retriever, own_retriever
from backlight.models.scorer import Inside, Progress, Scorer, no_progress
from backlight.models.scoring import ACTIVATIONS, Activation, PairScorer
from backlight.models.texts import check_names, check_pairs, check_text, check_texts

ENGINES = ("backlight", "torch")


def _on_own_engine(load: Callable[[], PairScorer], device: str, dtype: str | None, compile: bool) -> Scorer:
    """Return a model on backlight's engine: on the CPU, or with its encoder on a GPU."""
    for name, given in (("compile", compile), ("dtype", device == "cpu" and dtype)):
        if given:
            raise InputError(f"{name} must be left out: only engine torch supports it, add --engine torch")
    if device == "cpu":
        return load()
    gpu = cupy_device(device, dtype or "float32")
    return on_cuda(load(), gpu)


@dataclass(frozen=True, eq=False)
class Reranker:
    """Scores documents for a query and explains the scores.

    Args:
        scorer: the model that computes scores.
        estimate: the method that orders words which the default method does not measure, as for `leave_one_out`; by
            default that method's own choice.
        retriever: the default retriever for long lists (see NOTE [Retriever] in models/retrieval/index.py).
        languages: the codes of the languages that the model's card lists; empty if it lists none.
        threshold: the activated score below which a document does not answer, if the model's config.json has one.
    """

    scorer: Scorer
    estimate: str | None = None
    retriever: str = BY_WORDS
    languages: tuple[str, ...] = ()
    threshold: float | None = None

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = "builtin",
        *,
        engine: str = "backlight",
        label: int | str | None = None,
        instruction: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        compile: bool = False,
        read_typos: bool | None = None,
    ) -> "Reranker":
        """Load a model.

        Args:
            model: a folder as written by `save_pretrained`, the hub name of a model in Hugging Face's local cache, an
                installed package that contains a model, or "builtin".
            engine: "backlight", or "torch" for models that only PyTorch and transformers can run.
            label: for a classifier with several logits: which one is the score, by number or name.
            instruction: for prompted models: what makes a document relevant.
            device: "cpu" (default), "cuda", "cuda:1"; with engine "torch" also "mps". docs/gpu.md says what
                backlight's own engine runs on a GPU.
            dtype: on a GPU "float32" (default), "tf32" or "bfloat16", to which matrix products round their
                factors; with engine "torch" "float32" (default), "bfloat16", "float16", or "auto" (as the weights are
                stored).
            compile: with engine "torch": whether to compile the model's layers with `torch.compile`; takes a minute.
            read_typos: whether to correct misspelt words of a query (see NOTE [Misspellings] in
                models/misspellings.py); by default only for the built-in model. Results say which were corrected.

        Raises:
            InputError: there is no such model, the engine cannot run it, or the device is not available.
        """
        if engine not in ENGINES:
            raise InputError(f"engine must be one of {', '.join(ENGINES)}, got {engine}")
        folder = find_model(str(model))
        name = folder.resolve().name if Path(model).is_dir() else str(model)
        choice = read_choice(folder)
        reading = {"label": label, "instruction": instruction, "read_typos": read_typos}
        if engine == "torch":
            options = {"device": device or "cpu", "dtype": dtype or "float32", "compile": compile}
            scorer = torch_scorer(folder, name, **reading, **options)
        else:
            scorer = _on_own_engine(lambda: load_ranker(folder, name, **reading), device or "cpu", dtype, compile)
        return cls(scorer, choice and choice.label, own_retriever(folder), languages_of(folder), threshold_of(folder))

    @classmethod
    def of(
        cls,
        model: object,
        *,
        tokenizer: object = None,
        embeddings: object = None,
        label: int | str | None = None,
        prompt: str | None = None,
        answers: str | Sequence[str] | None = None,
        instruction: str | None = None,
        max_length: int | None = None,
        activation: str | Activation | None = None,
        device: str | None = None,
        dtype: str | None = None,
        name: str | None = None,
        compile: bool = False,
    ) -> "Reranker":
        """Wrap a model that is in memory. It is neither copied nor changed: see docs/models.md.

        Args:
            model: a `CrossEncoder`, `SentenceTransformer`, `SparseEncoder` or `MultiVectorEncoder` of
                sentence-transformers; a sequence classifier or language model of transformers, with its
                tokenizer; a function from (inputs_embeds, attention_mask) to scores, with tokenizer and embeddings; or
                a function from a list of pairs to scores, whose explanations are measured.
            tokenizer: a fast tokenizer of transformers, or one of the tokenizers library.
            embeddings: the word embedding layer for a function.
            label: which of several labels is the score, by number or name.
            prompt: for a language model: the prompt, a text that contains {query} and {document}.
            answers: the token whose logit is the score, or two, for the difference of their logits; by default yes and
                no.
            instruction: what makes a document relevant, for the prompt.
            max_length: the maximum number of tokens to read.
            activation: how scores are shown, a key of `ACTIVATIONS` or a function of an array.
            device: the device for inputs; by default the model's.
            dtype: "bfloat16" or "float16" to run under autocast; by default the model's own dtype.
            name: the model's name in results.
            compile: whether to compile the layers of a transformers model with `torch.compile`; takes a minute.

        Raises:
            InputError: the object is not a supported model, or an option does not apply to it.
        """
        options = Options(
            tokenizer,
            embeddings,
            label,
            prompt,
            answers,
            instruction,
            max_length,
            activation,
            device,
            dtype,
            name,
            compile,
        )
        return cls(scorer_of(model, options))

    @property
    def name(self) -> str:
        """The model's name."""
        return self.scorer.name

    @property
    def similarity(self) -> BiEncoder | None:
        """The bi-encoder that `retriever` names, if it is part of the model and therefore loaded; else None."""
        itself = isinstance(self.scorer, FusedCrossEncoder) and self.retriever not in (BY_WORDS, NONE)
        return self.scorer.similarity if itself and Path(self.retriever).name != OWN_RETRIEVER else None

    @property
    def reads_typos(self) -> bool:
        """Whether misspelt words of a query are corrected (see NOTE [Misspellings] in models/misspellings.py)."""
        return reads_misspellings(self.scorer)

    @property
    def reads_english_only(self) -> bool:
        """Whether the model's card lists English as its only language."""
        return set(self.languages) == {ENGLISH_CODE}

    def predict(
        self,
        pairs: Sequence[tuple[str, str]] | tuple[str, str],
        batch_size: int | None = None,
        *,
        activation: str | Activation | None = None,
        windows: str | None = BEST,
        stride: int | None = None,
        max_windows: int = MAX_WINDOWS,
    ) -> np.ndarray:
        """Return the score of each pair (query, document), after the activation.

        Args:
            pairs: a list of pairs, or a single pair, whose score is returned as a number.
            batch_size: how many pairs to run at once; by default whatever is fastest.
            activation: a key of `ACTIVATIONS` or a function; by default that of the model's folder. "identity" gives
                the raw score.
            windows, stride, max_windows: how to read documents longer than the model's limit, as for `rank`. A warning
                is given if windows were left out.

        Raises:
            InputTypeError: an item is not a pair of texts.
            InputError: a text contains a NUL (see NOTE [What is no text] in models/texts.py), or the activation is
                unknown.
        """
        if isinstance(pairs, (tuple, list)) and len(pairs) == 2 and all(isinstance(part, str) for part in pairs):
            reading = {"windows": windows, "stride": stride, "max_windows": max_windows}
            return self.predict([pairs], batch_size, activation=activation, **reading)[0]
        pairs = check_pairs(pairs)
        activate = self._activation(activation)
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be 1 or more, got {batch_size}")
        return activate(scores_in_windows(self.scorer, pairs, windows, stride, max_windows, batch_size))

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        *,
        explain: int = 0,
        method: str = DEFAULT,
        names: Sequence[str] | None = None,
        windows: str | None = BEST,
        stride: int | None = None,
        max_windows: int = MAX_WINDOWS,
        check: bool = True,
        candidates: int | None = None,
        retriever: str | Path | Index | None = None,
        advance: Progress = no_progress,
        **options,
    ) -> Ranking:
        """Rank documents for a query, best first.

        In a long list, a retriever selects candidates, and only these are scored; the others follow as `not_reranked`.

        Args:
            top_k: how many of the best documents to return; by default all.
            explain: how many of the best documents to explain.
            method: the explanation method, a name of `METHODS`; `options` are the method's.
            names: the documents' names; by default their numbers.
            windows: how to read documents longer than the model's limit: in overlapping windows, scored by the "best"
                or by the "mean", or truncated (None).
            stride: how many tokens each window starts after the previous one; by default half a window.
            max_windows: the maximum number of windows to score in a document, chosen by BM25 (see NOTE [Preselected
                windows] in explain/windows.py); 0 for all. A document's `window` says how many were scored.
            check: whether to check explanations against the score (see NOTE [The check] in explain/verification.py).
            candidates: how many documents to score, those that the retriever ranks highest. By default all of up to
                200 documents, and 100 of a longer list.
            retriever: "bm25"; a bi-encoder (a model folder or an installed package), whose cosine is added to BM25's
                score; an index of the documents (`build_index`); or "none" to score all. By default the retriever of
                the model's folder, else "bm25".
            advance: called with the number of documents newly scored or explained.

        Raises:
            InputTypeError: the query is not a text, or the documents are not a list of texts.
            InputError: there is no document, or a text has no token that the model can read; the retriever is not a
                bi-encoder, or its library is missing.
        """
        query, documents = check_text(query, "query"), check_texts(documents, "documents")
        names = None if names is None else check_names(names, len(documents))
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k must be 1 or more, got {top_k}")
        if retriever is not None and not isinstance(retriever, Index):
            check_retriever(retriever)
        options = self._method_options(method, options)
        ranking = rank_candidates(
            self.scorer,
            query,
            documents,
            names,
            candidates=candidates,
            retriever=self.retriever if retriever is None else retriever,
            similarity=self.similarity if retriever is None else None,
            method=method,
            top=explain,
            windows=windows,
            stride=stride,
            max_windows=max_windows,
            check=check,
            progress=advance,
            **options,
        )
        left = None if top_k is None else max(0, top_k - len(ranking.documents))
        others = self.other_languages(query, [(one.name, one.text) for one in ranking.documents])
        return replace(
            ranking,
            documents=ranking.documents[:top_k],
            not_reranked=ranking.not_reranked[:left],
            other_languages=others,
            threshold=self.threshold,
        )

    def explain(
        self,
        query: str,
        document: str,
        *,
        method: str = DEFAULT,
        windows: str | None = BEST,
        stride: int | None = None,
        max_windows: int = MAX_WINDOWS,
        check: bool = True,
        **options,
    ) -> Attribution:
        """Explain the score of one document: a value for each word of both texts.

        Args:
            method: the explanation method, a name of `METHODS`; `options` are the method's.
            windows, stride, max_windows: how to read a document longer than the model's limit, as for `rank`. The
                explanation's `window` says which window it explains, and how many there are.
            check: whether to check the explanation against the score (see NOTE [The check] in explain/verification.py).

        Raises:
            InputError: a text has no token that the model can read.
        """
        query, document = check_text(query, "query"), check_text(document, "document")
        options = self._method_options(method, options)
        reading = {"windows": windows, "stride": stride, "max_windows": max_windows}
        return explain_document(self.scorer, query, document, method=method, check=check, **reading, **options)

    def compare(
        self,
        query: str,
        a: str,
        b: str,
        *,
        method: str = MEASURED,
        names: tuple[str, str] = ("A", "B"),
        **options,
    ) -> Comparison:
        """Explain why one document ranks above the other: each word's part in it, and which words would swap them.

        Arguments, options and errors are those of `compare` in explain/comparison.py.
        """
        query, (a, b) = check_text(query, "query"), (check_text(a, "a"), check_text(b, "b"))
        return compare(self.scorer, query, a, b, method=method, names=names, **options)

    def matrix(self, query: str, document: str, *, method: str = "joint-occlusion", **options) -> Interactions:
        """Return the interaction of each word of the query with each word of the document.

        Arguments, options and errors are those of `matrix` in explain/methods/interactions.py.
        """
        query, document = check_text(query, "query"), check_text(document, "document")
        return matrix(self.scorer, query, document, method=method, **options)

    def terms(self, query: str, document: str) -> TermWeights:
        """Return the term weights of a sparse encoder (SPLADE): each text's terms, and their shares of the score.

        Raises:
            InputError: the model is not a sparse encoder.
        """
        pair = check_text(query, "query"), check_text(document, "document")
        return term_weights(self.scorer, self.scorer.read([pair])[0])

    def what_if(
        self, query: str, document: str, edits: Sequence[Edit], *, candidates: Sequence[str] = (), **reading
    ) -> WhatIf:
        """Return how the score changes when the document is edited; edits are applied one after another.

        Arguments and errors are those of `what_if` in explain/comparison.py.
        """
        query, document = check_text(query, "query"), check_text(document, "document")
        candidates = check_texts(candidates, "candidates")
        return what_if(self.scorer, query, document, edits, candidates=candidates, **reading)

    def other_languages(self, query: str, documents: Sequence[tuple[str, str]]) -> tuple[OtherLanguage, ...]:
        """Return the texts that appear to be in other languages; none, unless the model is known to read English only.

        Args:
            documents: the name and text of each.
        """
        if not self.reads_english_only:
            return ()
        found = ((name, other_language(text)) for name, text in [("the query", query), *documents])
        return tuple(OtherLanguage(name, language) for name, language in found if language)

    def build_up(self, query: str, document: str) -> BuildUp:
        """Return what the score would be if the model ended after each of its layers."""
        pair = check_text(query, "query"), check_text(document, "document")
        return build_up(self.scorer, self.scorer.read([pair]))[0]

    def inside(self, query: str, document: str, *, slopes: bool = False) -> Inside:
        """Return the hidden states and attentions of every layer for one pair.

        Args:
            slopes: whether to return the gradients of the score with respect to them, too.
        """
        pair = check_text(query, "query"), check_text(document, "document")
        return self.scorer.inside(PairBatch.of(self.scorer.read([pair])), slopes=slopes)

    def _method_options(self, method: str, options: dict) -> dict:
        return {"estimate": self.estimate, **options} if method == DEFAULT and self.estimate else options

    def _activation(self, activation: str | Activation | None) -> Activation:
        if activation is None:
            return self.scorer.activate
        if callable(activation):
            return activation
        if activation not in ACTIVATIONS:
            raise InputError(f"activation must be one of {', '.join(ACTIVATIONS)} or a function, got {activation}")
        return ACTIVATIONS[activation]

    def __repr__(self) -> str:
        return f"Reranker({self.name!r}, score={self.scorer.score_name!r}, max_tokens={self.scorer.max_tokens})"
