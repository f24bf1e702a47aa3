"""How bad the mistakes are of methods that use a hierarchy: people's, and the baseline's.

It is not of the paper. α, β and d are what their authors tried in the middle, or by default;
nothing was tuned. Each method is trained by the baseline's hierarchy and, as ``NAME-own``, by the
20 groups of CIFAR-100. Runs keep no probabilities, so the models are run on the test images again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...runs.config import OWN
from ..declaration import FULL, Experiment, Scale, Variant
from . import CONTINUOUS, STAGED_CURRICULUM
from .dependable import ADAPTIVE
from .real import setting


def _by(method: str, label: str, **settings: float) -> Variant:
    own = {f"{method}.{name}": value for name, value in settings.items()}
    return Variant(method, settings={"method_settings": own}, label=label)


COMPARED = (
    CONTINUOUS,
    replace(ADAPTIVE, label="C2F adaptive"),
    STAGED_CURRICULUM,
    Variant("multitask", label="Multitask"),
    _by("hxe", "HXE", alpha=0.4),
    _by("soft-labels", "soft labels", beta=10.0),
    _by("hace", "HACE", dilution=0.7),
)


def _by_both(variants: Iterable[Variant]) -> Iterator[Variant]:
    """Yield each variant by the baseline's hierarchy, and by that of the data."""
    for variant in variants:
        yield variant
        yield Variant(
            f"{variant.name}-own",
            variant.trains_by,
            {**variant.settings, "hierarchy": OWN},
            f"{variant.shown}, own groups",
        )


MISTAKES = Experiment(
    title="How bad the mistakes are",
    scales={
        FULL: Scale(
            "the paper's CNN and recipe; measured by the 20 groups of CIFAR-100",
            (setting("cifar100", 10_000, "cnn", tuple(_by_both(COMPARED))),),
        )
    },
    figure="mistakes",
    num_seeds=3,
)
