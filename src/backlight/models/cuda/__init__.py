"""Rerankers of BERT's shape on a GPU, by kernels of ours."""
