"""The command ``optrand`` as ``python -m optrand``."""

from __future__ import annotations

from optrand.cli import main

if __name__ == "__main__":
    main()
