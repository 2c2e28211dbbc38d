"""From a table of private labels to a released one.

========================================  ========================================================
:mod:`~optrand.release.job`               the jobs, on arrays
:mod:`~optrand.release.table_job`         a job on files
:mod:`~optrand.release.named`             randomizers that need no prior, as a user names them
:mod:`~optrand.release.randomizer_file`   additive noise in a file, and back
:mod:`~optrand.release.table`             the tables: CSV and Parquet
:mod:`~optrand.release.diagnosis`         what is wrong with private labels, for their owner alone
:mod:`~optrand.release.paid_prior`        a prior that was paid for, kept for a retry
:mod:`~optrand.release.declared`          labels, a public prior and outputs, as a user writes them
:mod:`~optrand.release.decimals`          numbers, as a user writes them
========================================  ========================================================
"""
