"""The colours of all figures, told apart by people who see colours differently, too."""

from __future__ import annotations

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
GREY = "#555555"  # of the baseline, and of what is not data
