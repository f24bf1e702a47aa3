"""The paper's tables and figures, and further ones, as declarations, and what runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util.imports import imported

if TYPE_CHECKING:
    from .declaration import Experiment

# What there is, imported when used.
EXPERIMENTS = {
    "shapes-size": "coarse2fine.experiments.paper.shapes:SIZE",
    "shapes-metrics": "coarse2fine.experiments.paper.shapes:METRICS",
    "real-size": "coarse2fine.experiments.paper.real:SIZE",
    "methods": "coarse2fine.experiments.paper.real:METHODS",
    "staged": "coarse2fine.experiments.paper.real:STAGED",
    "sensitivity": "coarse2fine.experiments.paper.real:SENSITIVITY",
    "curves": "coarse2fine.experiments.paper.real:CURVES",
    "confusion": "coarse2fine.experiments.paper.real:CONFUSION",
    "hierarchy": "coarse2fine.experiments.paper.real:HIERARCHY",
    "imagenet": "coarse2fine.experiments.paper.real:IMAGENET",
    "dependable": "coarse2fine.experiments.paper.dependable:DEPENDABLE",
    "levels": "coarse2fine.experiments.paper.dependable:LEVELS",
    "worth": "coarse2fine.experiments.paper.dependable:WORTH",
    "modern": "coarse2fine.experiments.paper.modern:MODERN",
    "mistakes": "coarse2fine.experiments.paper.mistakes:MISTAKES",
}

SUMMARY = "summary"  # of the rows of several


def find_experiment(name: str) -> Experiment:
    """Return a declared experiment.

    Args:
        name: One of `EXPERIMENTS`, or one of your own as ``package.module:NAME``.

    Examples:
        >>> find_experiment("shapes-metrics").title
        'The five distances on Shapes'
    """
    from .declaration import Experiment

    location = EXPERIMENTS.get(name, name)
    if ":" not in location:
        raise ValueError(
            f"there is no experiment {name!r}. Must be one of {', '.join(EXPERIMENTS)}, or one "
            f"of your own as package.module:NAME."
        )
    found = imported(location, "experiment")
    if not isinstance(found, Experiment):
        raise TypeError(
            f"experiment {name!r} must be a coarse2fine.experiments.declaration.Experiment. Got "
            f"a {type(found).__name__}."
        )
    return found
