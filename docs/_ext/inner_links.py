"""Links within the built pages lead to a file, and to an anchor in it, or the build fails."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

# made by the builder itself after the pages; a script reads the search's
WITHOUT_ANCHORS = {"genindex.html", "search.html", "py-modindex.html"}


class Page(HTMLParser):
    """Anchors and links of a page.

    Parameters
    ----------
    text
        Of the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is called, and where it leads."""
        given = dict(attrs)
        self.anchors |= {given[key] or "" for key in ("id", "name") if key in given}
        wanted = {"a": "href", "img": "src", "link": "href", "script": "src"}.get(tag)
        if wanted and given.get(wanted):
            self.links.add(given[wanted] or "")


def broken_links(folder: Path) -> list[str]:
    """Return each link between built pages that leads nowhere, with its page.

    Parameters
    ----------
    folder
        Of the pages.
    """
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    return [
        f"{path.relative_to(folder)}: {link}"
        for path, page in pages.items()
        for link in sorted(page.links)
        if not _leads_somewhere(link, path, pages)
    ]


def _leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if target not in pages or target.name in WITHOUT_ANCHORS:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].anchors


def _check(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        from sphinx.util.logging import getLogger

        for broken in broken_links(Path(app.outdir).resolve()):
            getLogger(__name__).warning("a link leads nowhere: %s", broken)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
