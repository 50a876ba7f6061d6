"""The recipe of the reranker that comes with backlight: see train_reranker.py beside this folder."""
