"""Shapes whose pixels are divided by 255 once more, as the authors' loader may have done.

Theirs are PNGs, which some readers return as numbers from 0 to 1 already. If so, their networks
saw numbers of at most 1/255, which could explain a lower baseline than ours at the same setting.

`c2f paper benchmarks.shapes_scaled_twice:TWICE --seeds 3`, in the repository, answers it; beside
it belong the runs of `c2f paper shapes-metrics`, which differ in nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from coarse2fine.experiments.declaration import FULL, Experiment, Scale, Setting
from coarse2fine.experiments.paper.shapes import DISTANCE, METRICS
from coarse2fine.models.cnn import CNN
from coarse2fine.runs.result import BASELINE


class ScaledCNN(CNN):
    """The paper's CNN, given images that are divided by 255 once more."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images / 255)


def _twice(row: Setting) -> Setting:
    """Return a row with the other network, and the embedding distance alone."""
    return replace(
        row,
        label=f"{row.label}, scaled twice",
        settings={**row.settings, "model": f"{__name__}:ScaledCNN"},
        variants=(DISTANCE,),
        paper={name: row.paper[name] for name in (BASELINE, DISTANCE.name)},
    )


TWICE = Experiment(
    title="Shapes scaled twice",
    scales={
        name: Scale(
            f"{METRICS.scale(name).about}; pixels divided by 255 twice",
            tuple(map(_twice, METRICS.scale(name).settings)),
        )
        for name in (FULL, "small")
    },
    figure="gains",
)
