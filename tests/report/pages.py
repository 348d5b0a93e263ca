"""Pages as a parser sees them, and names that break them."""

from __future__ import annotations

from html.parser import HTMLParser

from surrokit.output.console import printable

HOSTILE = {
    "<script>alert(1)</script>": None,
    "quote \" and ' & amp": None,
    "$x^{2$ \\frac": None,
    "μέση τιμή 平均": None,
    "a\x01b\u202e": None,
    "n" * 200: None,
}
"""Names of parameters that break pages which do not escape them."""

HOSTILE_SHOWN = {printable(name) for name in HOSTILE}

VOID = {"meta", "input", "br", "link", "img"}


class Parsed(HTMLParser):
    """Elements with their attributes, and the text in each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], f"elements without an end: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

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

    def texts_in(self, tag):
        return [text for name, text in self.texts if name == tag]
