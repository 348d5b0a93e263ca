"""Where the system's browser is."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FOUND = os.environ.get("SURROKIT_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
ABSENT = f"no browser is installed; install one of {', '.join(NAMES)}, or set SURROKIT_BROWSER"
