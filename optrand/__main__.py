"""``python -m optrand`` is the command ``optrand``."""

from __future__ import annotations

from optrand.cli import main

if __name__ == "__main__":
    main()
