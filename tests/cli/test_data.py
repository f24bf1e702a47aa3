"""`c2f data`."""

import json

import pytest


def test_it_shows_classes_samples_and_sizes(c2f, write):
    rows = [[n % 7, n % 5, f"animal {n % 3}"] for n in range(1500)]
    write("zoo.csv", [["size", "speed", "label"], *rows])
    code, out, err = c2f("data", "shapes:300", "zoo.csv", "--image-size", "24")
    assert (code, err) == (0, "")
    # A fifth is for the test, and a fifth of the rest for validation.
    assert [line.split() for line in out.splitlines()] == [
        ["data", "kind", "classes", "training", "validation", "test", "size"],
        ["shapes:300", "image", "30", "192", "48", "60", "3×24×24"],
        ["zoo.csv", "table", "3", "960", "240", "300", "2"],
    ]


def test_json_is_a_line_for_each(c2f):
    code, out, _ = c2f("data", "shapes:300", "digits", "--json")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "data": "shapes:300", "kind": "image", "classes": 30, "training": 192,
            "validation": 48, "test": 60, "size": [3, 64, 64],
        },
        {
            "data": "digits", "kind": "table", "classes": 10, "training": 1150,
            "validation": 288, "test": 359, "size": [64],
        },
    ]  # fmt: skip


def test_it_draws_an_image_of_each_class(c2f, tmp_path):
    code, out, err = c2f("data", "shapes:300", "--image-size", "24", "--examples", "all.png")
    assert (code, err) == (0, "saved as all.png\n")
    assert out.splitlines()[1].split()[0] == "shapes:300"
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no data 'nowhere'"),
        (["digits", "--examples", "a.png"], "--examples draws images, and digits is of kind 'tab"),
        (["digits", "shapes", "--examples", "a.png"], "--examples draws the images of one data "),
        (["shapes:300", "--examples", "a.txt"], "a.txt: a figure is written as .svg, .png, .pdf."),
        (["digits", "--image-size", "8"], "the images of digits have one size; leave --image-size"),
    ],
)
def test_what_cannot_be_shown_is_one_line(c2f, tmp_path, arguments, message):
    code, _, err = c2f("data", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {message}")
    assert not list(tmp_path.iterdir())
