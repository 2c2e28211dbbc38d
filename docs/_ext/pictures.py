"""A directive that runs the code it shows, in the namespace of its page, and shows the picture that comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from optrand.plotting import save_figure


class Picture(SphinxDirective):
    """``picture NAME``: code that ends with ``figure = ...``. The description of the picture is its title."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the code and of its picture."""
        names: dict[str, Any] = self.env.temp_data.setdefault("pictures", {})
        code = "\n".join(self.content)
        exec(compile(code, f"{self.env.docname}, {self.arguments[0]}", "exec"), names)  # noqa: S102
        # Below the source folder, as images must be, and in the part of it that is not under version control.
        path = Path(self.env.srcdir, "_build", "pictures", f"{self.arguments[0]}.svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        save_figure(names["figure"], path)
        shown = nodes.literal_block(code, code, language="python")
        title = " ".join(names["figure"].get_suptitle().split())
        return [shown, nodes.image(uri=f"/_build/pictures/{path.name}", alt=title)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
