"""Tables of any size as streams of record batches, from CSV and Parquet and back."""
