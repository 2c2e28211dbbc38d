"""Measurements that anybody can repeat: ``python -m benchmarks NAME``. They print times and never assert one."""
