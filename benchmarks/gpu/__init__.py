"""The benchmark on a GPU, which checks results bit for bit and measures speed.

It needs PyTorch, CuPy or JAX, and otherwise only what tileops itself needs. Each step of a run is
a module, or the package ``correctness``; ``__main__`` runs one step after the other.
"""
