"""Reports of made-up predictions, and what a reader does with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_runs import make_run

from coarse2fine import Hierarchy

NAMES = tuple(f"animal {number}" for number in range(12))
COLOUR_SCHEMES = ("light", "dark")


def comparison(path, names, *, samples=30, seeds=(0, 1), levels=None, cluster_names=None):
    """Write a comparison of made-up predictions; return them by method and seed."""
    count = len(names)
    levels = levels or [np.arange(count) * 2 // count, np.arange(count) // 2]
    hierarchy = Hierarchy.from_levels(levels, names, cluster_names=cluster_names)
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(count), samples)
    found = {}
    for seed in seeds:
        for method, share in (("baseline", 0.5), ("continuous", 0.65)):
            wrong = rng.integers(count, size=len(targets))
            near = np.minimum(targets // 2 * 2 + rng.integers(2, size=len(targets)), count - 1)
            luck = rng.random(len(targets))
            predictions = np.where(luck < share, targets, np.where(luck < 0.9, near, wrong))
            make_run(
                path / f"seed-{seed}" / method,
                method=method,
                seed=seed,
                hierarchy=None if method == "baseline" else hierarchy,
                predictions=predictions,
                targets=targets,
                class_names=names,
            )
            found[method, seed] = predictions
    return targets, found


def open_report(page, path):
    page.goto(Path(path).as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=30_000)
    return page


def look_up(report, truth, predicted):
    report.fill("#pair-true", truth)
    report.fill("#pair-predicted", predicted)
    report.click("#pair-form button")
    return report.inner_text("#pair").replace("\u2068", "").replace("\u2069", "")
