"""Reading the files that users bring."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.errors import TargetError
from surrokit.types import FloatArray


def text_of(path: str | Path, what: str) -> str:
    """Return the text of a file, unpacked if its name ends in .gz.

    Parameters
    ----------
    path
        The file.
    what
        What it should be, for the message.

    Raises
    ------
    TargetError
        If it cannot be read as text.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TargetError(
            f"path must be that of {what}, as text or as text in .gz; {path} could not be read: "
            f"{error}"
        ) from error


def array_from(source: str | Path | npt.ArrayLike, name: str) -> FloatArray:
    """Return an array, read from a .npy file where a path is given.

    Parameters
    ----------
    source
        The array, or the path.
    name
        The setting, for the message.

    Raises
    ------
    TargetError
        If the file cannot be read, or is not numbers.
    """
    try:
        array = np.load(source) if isinstance(source, str | Path) else source
        return np.asarray(unmasked(array), dtype=np.float64)
    except (OSError, EOFError, ValueError, TypeError) as error:
        shown = f"{source} " if isinstance(source, str | Path) else ""
        raise TargetError(
            f"{name} must be an array of numbers or the path of a .npy file that holds one; "
            f"{shown}could not be read: {error}"
        ) from error


def design_from(source: Any) -> Any:
    """Return a design matrix, dense or sparse.

    Parameters
    ----------
    source
        An array; a SciPy sparse matrix; or the path of a .npy file, or of an .npz file as
        ``scipy.sparse.save_npz`` writes it.

    Raises
    ------
    TargetError
        If the file cannot be read, or is not numbers.
    """
    from scipy import sparse

    if sparse.issparse(source):
        return source
    if not isinstance(source, str | Path) or Path(source).suffix != ".npz":
        return array_from(source, "design")
    try:
        return sparse.load_npz(source)
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise TargetError(
            f"design must be a sparse matrix as scipy.sparse.save_npz writes it; {source} could "
            f"not be read: {error}"
        ) from error
