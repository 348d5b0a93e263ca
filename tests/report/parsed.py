"""A page as a parser sees it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link", "img"}


class Parsed(HTMLParser):
    """Elements with their attributes, and the text in each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.parents: list[tuple[str, ...]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], f"elements without an end: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.parents.append(tuple(self._open))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.parents.append(tuple(self._open))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def attributes(self, key):
        return [each[key] for _, each in self.elements if key in each]

    def text(self, *tags):
        return "".join(text for tag, text in self.texts if not tags or tag in tags)
