"""The long description of the package: the README, whose links and pictures a package index can follow.

With ``Repository`` in ``[project.urls]`` of ``pyproject.toml``, the one place for it, links become absolute, to the tag
of the version. Without it pictures are left out, and links are left as their text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n?")
LINK = re.compile(r"(?<!!)\[((?:`[^`]*`|[^\]`])*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def long_description(readme: str, version: str, repository: str | None) -> str:
    """Make the links of a README absolute, in the form that GitHub has for files of a tag, or take them out."""
    if repository is None:
        return LINK.sub(r"\1", IMAGE.sub("", readme))
    base = repository.rstrip("/")
    pictured = IMAGE.sub(rf"![\1]({base}/raw/v{version}/\2)\n", readme)
    return LINK.sub(rf"[\1]({base}/blob/v{version}/\2)", pictured)


class LongDescription(MetadataHookInterface):
    """Metadata hook of hatchling that sets the readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the readme."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        description = long_description(text, metadata["version"], repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": description}
