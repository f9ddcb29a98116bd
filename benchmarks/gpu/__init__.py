"""The benchmark on a GPU: results checked bit for bit, and speed measured.

It needs PyTorch, CuPy or JAX, and nothing else that tileops itself does not need. Each step of a
run is a module, or the package ``correctness``; ``__main__`` runs one after the other.
"""
