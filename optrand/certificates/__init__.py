"""Certificates: measured epsilon and bias, the exact loss from above, and the exact bound of the dual from below."""
