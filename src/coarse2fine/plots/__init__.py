"""Figures to look at in a browser, one file each: plain values in, a plotly figure out."""

from .class_gains import class_gains
from .confusion import confusion
from .curves import curves
from .icicle import icicle
from .levels import levels

__all__ = ["class_gains", "confusion", "curves", "icicle", "levels"]
