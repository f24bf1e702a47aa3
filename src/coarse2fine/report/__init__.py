"""Finished runs as one HTML page that people open in a browser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._util.files import write_atomically

if TYPE_CHECKING:
    from ..runs.identity import Factory
    from .runs import Source


def write_report(
    runs: Source | Sequence[Source],
    path: str | os.PathLike[str],
    *,
    method: str | None = None,
    seed: int | None = None,
    examples: int = 4,
    answers: bool = True,
    folder: str | os.PathLike[str] | None = None,
    model: Factory | None = None,
) -> dict[str, Any]:
    """Write a self-contained HTML page of one run, or of many to compare.

    Args:
        runs: A `Result`, a `RunResult`, the folder of a run or of a comparison, or several of
            these.
        path: The HTML file; an existing one is replaced whole or not at all.
        method: Whose hierarchy, classes and mistakes are shown in detail, beside the baseline's.
            Defaults to None: the first with a hierarchy, ``"continuous"`` preferred.
        seed: Whose hierarchy orders the classes. Defaults to None: the first.
        examples: How many images of each class are shown, where the data are images that can be
            read again. Defaults to 4.
        answers: Whether to tell how fine the shown run can answer, for which its model is given
            the validation and test samples once more. Defaults to True.
        folder: Where a named data set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.
        model: What makes that model, a callable or ``package.module:callable``. Defaults to
            None: the run says it, which is enough where the model is one of ours or was
            trained by this process.

    Returns:
        What the page shows, as plain values.

    Examples:
        >>> from coarse2fine import fit, write_report
        >>> content = write_report(fit("shapes"), "report.html")  # doctest: +SKIP
        >>> print(content["choice"], content["sentence"])  # doctest: +SKIP
    """
    from .content import report_content
    from .page import render, to_json

    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file, such as report.html in it.")
    is_many = isinstance(runs, Sequence) and not isinstance(runs, str)
    sources: Any = runs if is_many else [runs]
    content = report_content(
        sources,
        method=method,
        seed=seed,
        examples=examples,
        answers=answers,
        folder=folder,
        model=model,
    )
    write_atomically(Path(path), render(content))
    return to_json(content)
