"""What `run`, `graph`, `replay` and `doctor` run: scripts, modules, notebooks; and cells of a running notebook."""
