"""Benchmarks of tileops: what is measured, how, against which libraries, and how it is shown."""
