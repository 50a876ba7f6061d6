"""Candidates for a reranker from a long list of documents: BM25, a bi-encoder's cosine, and both fused."""
