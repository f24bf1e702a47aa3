"""Figures as files: their width, their formats, and names of any letters."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from contents import content, draw_figure, row, variant

from coarse2fine import Hierarchy
from coarse2fine.experiments.figures import FIGURES
from coarse2fine.figures import letters
from coarse2fine.figures.letters import cut, drawable, fitted, inches, lettering
from coarse2fine.figures.style import new_figure, printed, save

HOSTILE = [
    "$a_b$ for 5$", "\\frac{", "<script>alert('x')</script>--&", "عربي", "שלום", "🐱🫠", "日本語",
    "a\x01b", "not\udcffutf8", "a\nb", "\u202egnol", "x" * 200, "many words " * 20,
]  # fmt: skip
COUNT = len(HOSTILE)
TREE = Hierarchy.from_levels([np.arange(COUNT) // 6], HOSTILE)
LABEL = f"$x$ \\frac{{ 🫠 {'long ' * 50}"


MEASURES = {"mean_height": 1.0, "severity": 1.5, "f1": 50.0, "calibration": [5.0, 9.0]}


def hostile_row(method="$C_2$\x00 🫠" + "F" * 90):
    """A setting for all figures, called and full of classes as no one would call them."""
    counts = np.eye(COUNT, dtype=int)
    both = {"baseline": counts.tolist(), "continuous": (counts + 1).tolist()}
    shares = {"baseline": [50.0] * COUNT, "continuous": [60.0] * COUNT}
    found = [("baseline", [0.1, 0.2]), ("continuous", [0.3, 0.4])]
    length = {"curriculum_epochs": 3}
    one = row(
        {"baseline": [20, 21], "continuous": [22, 24]}, LABEL,
        variants=[variant("continuous", method, **length)], samples=100,
        confusion={"method": "continuous", "order": list(range(COUNT)), "edges": [[0, 6, COUNT]],
                   "class_names": HOSTILE, "counts": both},
        hierarchies={"continuous": {"seed": 0, **TREE.to_dict()}},
        classes={"method": "continuous", "class_names": HOSTILE, "accuracies": shares},
        levels={"method": "continuous", "seed": 0, "num_clusters": [3, COUNT], "runs": [
            {"method": name, "seed": 0, "accuracy": it} for name, it in found]},
        curves=[{"method": name, "seed": 0, "test_accuracy": it, "level": [0, 1]}
                for name, it in found],
        worth=[{"method": "continuous", "seed": 0, "learned": 2.0, "gain": 3.0}],
        mistakes=[{"method": name, "seed": 0, "accuracy": 20, "people": MEASURES, "made": None}
                  for name, _ in found],
    )  # fmt: skip
    for run in one["runs"]:
        run |= length
    return one


def texts(figure):
    """The extents of all text that is seen, in inches."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    # Matplotlib has numbers ready for places of an axis that are not shown.
    found = [text for text in found if not re.fullmatch(r"[−\d.]+", text.get_text())]
    return {text.get_text(): text.get_window_extent().get_points() / figure.dpi for text in found}


@pytest.mark.parametrize("width", [None, 3.5, 7.0])
@pytest.mark.parametrize("name", FIGURES)
def test_names_of_any_letters_are_drawn_within_the_figure(name, width, tmp_path):
    with printed(width):
        figure = draw_figure(name, content(hostile_row()), width)
        save(figure, tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    assert width in (None, figure.get_figwidth())
    size = figure.get_size_inches()
    for text, (low, high) in texts(figure).items():
        assert (low > -0.02).all(), text
        assert (high < size + 0.02).all(), text


def test_a_narrow_figure_has_its_panels_below_each_other():
    one = hostile_row("C2F")
    for name, narrow in (("confusion", [(3, 1)]), ("gains", [(2, 1)])):
        rows = [one] if name == "confusion" else [one, one]
        with printed(3.5):
            axes = draw_figure(name, content(*rows), 3.5).axes[0]
        assert [axes.get_subplotspec().get_gridspec().get_geometry()] == narrow


def test_letters_in_print_are_of_eight_points():
    with printed(3.5):
        figure = draw_figure("gains", content(hostile_row("C2F")), 3.5)
    assert figure.axes[0].xaxis.label.get_fontsize() == 8


def test_a_hierarchy_says_how_much_room_it_needs():
    levels = [np.arange(32) // 2**power for power in (4, 3, 2, 1)]
    deep = {"": Hierarchy.from_levels(levels).to_dict()}
    with pytest.raises(ValueError, match=r"4 levels above the classes need a width of at least 4"):
        draw_figure("hierarchy", content(row(hierarchies=deep)), 3.5)


# -------------------------------------------------------------------------------- letters


def test_what_no_font_has_gets_a_mark():
    assert drawable("a\x00b \udcff\n日本語") == "a�b � ���"
    assert drawable("naïve שלום $x$") == "naïve שלום $x$"


def test_letters_that_another_font_has_are_drawn_with_it(monkeypatch):
    monkeypatch.setattr(letters, "_has", lambda path, letter: letter != "x" or "Serif" in path)
    for remembered in (letters._font_with, letters._is_drawn):
        remembered.cache_clear()
    try:
        assert drawable("ax") == "ax"
        assert lettering("ax") == {
            "parse_math": False,
            "fontfamily": ["sans-serif", "DejaVu Serif"],
        }
        assert lettering("a") == {"parse_math": False}
    finally:
        for remembered in (letters._font_with, letters._is_drawn):
            remembered.cache_clear()


def test_a_text_is_cut_and_wrapped_to_the_room_it_has():
    assert cut("short", 1.0) == "short"
    assert cut("short", 0.01) == "…"
    assert cut("m" * 99, 1.0).endswith("m…")
    assert 0.8 < inches(cut("m" * 99, 1.0)) <= 1.0
    lines = fitted("several words in a row " + "m" * 99, 1.0).splitlines()
    assert " ".join(lines).startswith("several words in a row mmm")
    assert all(inches(line) <= 1.0 for line in lines)
    assert fitted("one line", 5.0) == "one line"


# ----------------------------------------------------------------------------------- files


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_figure_gives_the_same_file(suffix, tmp_path):
    for name in ("a", "b"):
        save(draw_figure("gains", content(hostile_row("C2F"))), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert files(tmp_path) == [f"a{suffix}", f"b{suffix}"]


def test_a_pdf_holds_its_fonts_and_no_date(tmp_path):
    save(draw_figure("gains", content(hostile_row("C2F"))), tmp_path / "a.PDF")
    written = (tmp_path / "a.PDF").read_bytes()
    assert written.startswith(b"%PDF")
    assert b"/FontFile2" in written  # TrueType, as journals ask for
    assert b"/Type3" not in written
    assert b"Date" not in written


def test_a_file_that_cannot_be_drawn_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="100,000 × 100,000 pixels are too many"):
        save(new_figure(100, 100), path, dpi=1000)
    damaged = new_figure()
    damaged.text(0, 0, "$\\frac{$")
    with pytest.raises(ValueError, match="frac"):
        save(damaged, path)
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["a.png"]


@pytest.mark.parametrize("name", ["a.jpg", "a"])
def test_other_formats_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"a figure is written as \.svg, \.png, \.pdf\."):
        save(new_figure(), tmp_path / name)


def test_a_file_without_a_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="make it first"):
        save(new_figure(), tmp_path / "none" / "a.svg")
