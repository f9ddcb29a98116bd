"""Benchmarks of tileops: what is measured, how, against whom, and the tables and plots of it."""
