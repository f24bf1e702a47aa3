"""An experiment's table, by hand."""

import contents
import pytest

from coarse2fine.experiments import tables
from coarse2fine.experiments.content import results_from_dict
from coarse2fine.experiments.tables import markdown

NBDT = contents.variant("nbdt", "NBDT")


def table(content, *write):
    return tables.table(results_from_dict(content), *write)


def notes(content):
    return tables.notes(results_from_dict(content))


def cells(content, columns=9):
    """The table's cells, row by row."""
    lines = table(content, markdown).splitlines()
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    assert all(len(row) == columns for row in rows)
    return rows


def two_seeds(*rows):
    return {**contents.content(*rows), "seeds": [0, 1]}


def test_headings():
    assert cells(contents.content()) == [
        ["setting", "method", "runs", "epochs", "accuracy", "gain", "95% interval", "wins", "paper"]
    ]


def test_gains_are_computed_per_run_and_then_averaged():
    # The baselines are 20 and 30: 25 ± 5. The gains are 1 and 3: 2 ± 1, and Student's t with
    # one degree of freedom has its 97.5% point at 12.71. The accuracies are 21 and 33: 27 ± 6.
    row = contents.row(
        {"baseline": [20.0, 30.0], "continuous": [21.0, 33.0]},
        "animals",
        paper={"baseline": [25.5, 0.4], "continuous": [1.5, 0.25]},
    )
    assert cells(two_seeds(row))[1:] == [
        ["animals", "baseline", "2", "20", "25.00 ± 5.00", "", "", "", "25.50 ± 0.40"],
        ["", "C2F", "2", "20", "27.00 ± 6.00", "+2.00 ± 1.00", "-10.71 to +14.71", "2 of 2",
         "+1.50 ± 0.25"],
    ]  # fmt: skip


def test_a_method_is_paired_with_the_baseline_of_its_own_seed():
    runs = [
        contents.run("continuous", 1, 33.0),
        contents.run("baseline", 0, 20.0),
        contents.run("continuous", 2, 50.0),  # whose baseline is not done
        contents.run("continuous", 0, 20.0),
        contents.run("baseline", 1, 30.0),
    ]
    found = cells(contents.content(contents.row(runs=runs)))[2]
    assert found[2:6] == ["3", "20", "34.33 ± 8.69", "+1.50 ± 1.50"]
    assert found[7] == "1.5 of 2"


def test_a_single_run_has_neither_error_nor_interval():
    found = cells(contents.content(contents.row({"baseline": [20.0], "continuous": [19.5]})))
    assert found[1][2:] == ["1", "20", "20.00", "", "", "", ""]
    assert found[2][2:] == ["1", "20", "19.50", "-0.50", "", "0 of 1", ""]


def test_validation_chooses_between_the_baseline_and_a_variant_in_each_seed():
    runs = [
        contents.run("baseline", 0, 20.0, val_accuracy=0.3),
        contents.run("continuous", 0, 25.0, val_accuracy=0.31),
        contents.run("baseline", 1, 20.0, val_accuracy=0.32),
        contents.run("continuous", 1, 30.0, val_accuracy=0.31),  # better only in the test
        contents.run("baseline", 2, 20.0, val_accuracy=0.3),
        contents.run("continuous", 2, 10.0, val_accuracy=0.3),  # no better: the baseline is taken
        contents.run("baseline", 3, 20.0, val_accuracy=0.3),  # whose variant is not done
    ]
    row = contents.row(runs=runs, chosen_among=["continuous"])
    found = cells(contents.content(row), 11)[-1]
    # The gains are 5, 0 and 0: 1.67 ± 1.67.
    assert found[1:6] == ["chosen", "3", "20", "21.67 ± 1.67", "+1.67 ± 1.67"]


def test_a_note_says_what_all_seeds_together_would_choose():
    runs = [
        contents.run("baseline", 0, 20.0, val_accuracy=0.32),
        contents.run("continuous", 0, 25.0, val_accuracy=0.31),
        contents.run("baseline", 1, 20.0, val_accuracy=0.30),
        contents.run("continuous", 1, 22.0, val_accuracy=0.33),
    ]
    row = contents.row(runs=runs, chosen_among=["continuous"])
    # The gains are 5 and 2, though the first seed by itself would choose the baseline.
    text = "by the mean of all seeds C2F is chosen, with a gain of +3.50 ± 1.50."
    assert any(text in note for note in notes(two_seeds(row)))
    one_seed = contents.row(runs=runs[:2], chosen_among=["continuous"])
    assert not any("chosen" in note for note in notes(contents.content(one_seed)))


def test_what_is_chosen_shows_what_everything_took_with_all_that_it_needs():
    short = contents.variant("continuous-short", hierarchy_epochs=5, curriculum_epochs="adaptive")
    runs = [
        # It went on to 40 epochs in 120 seconds, but stopped by itself after 20.
        contents.run("baseline", 0, 20.0, epochs=40, own_epochs=20, seconds=120.0),
        contents.run("continuous", 0, 25.0, epochs=30, seconds=90.0),
        contents.run("continuous-short", 0, 25.0, epochs=30, seconds=90.0, hierarchy_epochs=5,
                     hierarchy_seconds=30.0),
        contents.run("spl", 0, 20.0, epochs=10, seconds=30.0),
    ]  # fmt: skip
    variants = [contents.variant("continuous"), short, contents.variant("spl")]
    row = contents.row(runs=runs, variants=variants, chosen_among=["continuous"])
    found = cells(contents.content(row), 11)
    assert [line[-2:] for line in found] == [
        ["in all", "minutes"],
        ["20", "1.0"],
        ["50", "2.5"],
        ["35", "2.0"],
        ["10", "0.5"],
        ["50", "2.5"],
    ]


def test_what_is_not_done_leaves_its_cells_empty():
    found = cells(contents.content(contents.row(paper={"continuous": [1.5, None]})))
    assert found[1][1:] == ["baseline", "0", "", "", "", "", "", ""]
    assert found[2][1:] == ["C2F", "0", "", "", "", "", "", "+1.50"]


def test_each_further_rule_of_inference_is_a_row_of_its_own():
    runs = [
        contents.run("baseline", 0, 20.0),
        contents.run("nbdt", 0, 22.0, by_rule={"soft": 0.22, "hard": 0.19}),
    ]
    row = contents.row(runs=runs, variants=[NBDT], paper={"nbdt": [0.45, 0.45]})
    assert cells(contents.content(row))[2:] == [
        ["", "NBDT", "1", "20", "22.00", "+2.00", "", "1 of 1", "+0.45 ± 0.45"],
        ["", "NBDT, hard", "1", "20", "19.00", "-1.00", "", "0 of 1", ""],
    ]


def test_plain_text_has_aligned_columns():
    row = contents.row({"baseline": [20.0, 30.0], "continuous": [21.0, 33.0]}, "animals")
    assert table(two_seeds(row)).splitlines() == [
        "setting    method  runs  epochs      accuracy          gain      95% interval    wins  paper",  # noqa: E501
        "animals  baseline     2      20  25.00 ± 5.00",
        "              C2F     2      20  27.00 ± 6.00  +2.00 ± 1.00  -10.71 to +14.71  2 of 2",
    ]


def test_markdown_and_its_notes_are_apart():
    text = table(contents.content(contents.row(label="animals")), markdown)
    assert text.splitlines()[1] == "|---|---|---|---|---|---|---|---|---|"
    assert text.splitlines()[-1] == "note: animals: 6 of 6 runs are missing."


def test_a_note_on_what_is_missing():
    row = contents.row({"baseline": [20.0, 30.0, 25.0], "continuous": [21.0]}, "animals")
    assert notes(contents.content(row)) == ["animals: 2 of 6 runs are missing."]


def test_a_note_on_what_has_not_levelled_off():
    runs = [
        contents.run("baseline", 0, 20.0, levelled_off=False),
        contents.run("continuous", 0, 21.0),
    ]
    content = {**contents.content(contents.row(label="animals", runs=runs)), "seeds": [0]}
    assert notes(content) == [
        "animals: 1 of 2 runs have not levelled off, so that differences may be noise."
    ]


@pytest.mark.parametrize(
    ("paper", "side"),
    [
        ([4.0, 0.0], None),  # two standard errors above what was found
        ([4.1, 0.0], "below"),
        ([4.1, 1.0], None),  # the paper's own error counts too
        ([9.0, None], None),  # of which nobody knows how sure it is
        ([0.0, 0.0], None),
        ([-0.1, 0.0], "above"),
        ([-0.1, 1.0], None),
    ],
)
def test_a_note_on_a_gain_unlike_the_papers_by_more_than_two_errors(paper, side):
    gains = {"baseline": [20.0, 30.0], "continuous": [21.0, 33.0]}  # 2 ± 1
    found = notes(two_seeds(contents.row(gains, "animals", paper={"continuous": paper})))
    line = f"animals: the gain of C2F is 2.1 standard errors {side} the paper's."
    assert found == ([line] if side else [])


def test_a_note_on_where_t_was_cut_and_none_where_it_is_as_long_by_itself():
    runs = [
        contents.run("baseline", 0, 20.0),
        contents.run("continuous", 0, 21.0, curriculum_epochs=66),
    ]
    row = contents.row(label="animals", runs=runs)
    assert notes({**contents.content(row), "seeds": [0]}) == []
    assert notes({**contents.content({**row, "cut": 1}), "seeds": [0]}) == [
        "animals: T is cut to 66, a third of the epochs, in 1 runs."
    ]


def test_a_single_run_is_not_held_against_the_paper():
    row = contents.row({"baseline": [20.0], "continuous": [10.0]}, paper={"continuous": [5.0, 0.1]})
    assert notes({**contents.content(row), "seeds": [0]}) == []
