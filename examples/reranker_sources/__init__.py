"""Texts, queries and wrong answers of many kinds, from which a reranker is trained and by which it is judged."""
