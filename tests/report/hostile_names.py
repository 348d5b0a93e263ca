"""Names of parameters that break pages which do not escape them."""

HOSTILE = {
    "<script>alert(1)</script>": None,
    "quote \" and ' & amp": None,
    "$x^{2$ \\frac": None,
    "μέση τιμή 平均": None,
    "n" * 200: None,
}
