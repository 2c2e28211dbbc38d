"""Experiments that train models on private labels: ``python -m benchmarks learning --experiment NAME [--seeds N]``.

An experiment is a record of :mod:`~benchmarks.learning.experiment`, named in :mod:`~benchmarks.learning.run`. Its
settings are fixed in ``settings.toml`` before it is run.
"""
