"""The Shapes data: what is drawn, against areas and a second way to draw, and its statistics."""

import math

import numpy as np
import pytest
import torch

from coarse2fine.data.sets.shapes import CLASS_NAMES, COLOURS, SHAPES, draw_shapes, load_shapes

CYAN, GRAY, MAGENTA = range(3)
CIRCLE, ELLIPSE, TRIANGLE, SQUARE = range(4)
SIDES = {SHAPES.index(f"polygon[{sides}]"): sides for sides in range(3, 11)}


def drawn(shape, *, colour=CYAN, radii=(9.3, 14.1), rotation=0.7, position=(0.31, 0.62), size=64):
    """One image."""
    return draw_shapes([shape], [colour], [radii], [rotation], [position], size=size)[0]


def area(shape, a, b):
    if shape == CIRCLE:
        return math.pi * a * a
    if shape == ELLIPSE:
        return math.pi * a * b
    return SIDES[shape] * math.tan(math.pi / SIDES[shape]) * a * a


def half_extents(shape, a, b, rotation):
    """How far the shape reaches from its centre: to the left, up, to the right, down."""
    if shape <= ELLIPSE:
        b = b if shape == ELLIPSE else a
        x = math.hypot(a * math.cos(rotation), b * math.sin(rotation))
        y = math.hypot(a * math.sin(rotation), b * math.cos(rotation))
        return x, y, x, y
    turns = rotation + 2 * math.pi * np.arange(SIDES[shape]) / SIDES[shape]
    x, y = (f(turns) * a / math.cos(math.pi / SIDES[shape]) for f in (np.cos, np.sin))
    return -x.min(), -y.min(), x.max(), y.max()


def supersampled(shape, a, b, rotation, position, size, samples=64):
    """The share of samples**2 points a pixel that lie within the shape, by its inequalities."""
    left, up, right, down = half_extents(shape, a, b, rotation)
    centre_x = position[0] * (size - left - right) + left
    centre_y = position[1] * (size - up - down) + up
    at = (np.arange(size * samples) + 0.5) / samples
    x, y = np.meshgrid(at - centre_x, at - centre_y)
    u = x * math.cos(rotation) + y * math.sin(rotation)
    v = y * math.cos(rotation) - x * math.sin(rotation)
    if shape <= ELLIPSE:
        inside = (u / a) ** 2 + (v / (b if shape == ELLIPSE else a)) ** 2 <= 1
    else:
        step = 2 * math.pi / SIDES[shape]
        normals = step * (np.arange(SIDES[shape]) + 0.5)
        inside = np.ones_like(u, dtype=bool)
        for normal in normals:
            inside &= u * math.cos(normal) + v * math.sin(normal) <= a
    return inside.reshape(size, samples, size, samples).mean((1, 3))


@pytest.fixture(scope="module")
def source():
    return load_shapes(count=4_000)


@pytest.fixture(scope="module")
def images(source):
    return torch.cat([source.train.inputs, source.test.inputs]).numpy()


@pytest.fixture(scope="module")
def classes(source):
    return torch.cat([source.train.targets, source.test.targets]).numpy()


# --------------------------------------------------------------------------- one image


@pytest.mark.parametrize("shape", range(10), ids=SHAPES)
@pytest.mark.parametrize("size", [17, 64])
def test_the_area_drawn_is_that_of_the_shape(shape, size):
    scale = size / 64
    rng = np.random.default_rng(shape)
    radii = rng.uniform(6, 16, (50, 2)) * scale
    images = draw_shapes(
        np.full(50, shape),
        np.full(50, CYAN),
        radii,
        rng.uniform(0, 7, 50),
        rng.uniform(0, 1, (50, 2)),
        size=size,
    )
    covered = images[:, 1].sum((1, 2)) / 255
    expected = [area(shape, *pair) for pair in radii]
    # Rounding errs by 1/255/√12 a partial pixel; there are at most 210 of them.
    np.testing.assert_allclose(covered, expected, atol=6 * math.sqrt(210 / 12) / 255)


@pytest.mark.parametrize("shape", range(10), ids=SHAPES)
def test_every_pixel_is_its_share_of_points_inside(shape):
    radii, rotation, position = (6.1, 3.2), 0.4 + shape, (0.13, 0.87)
    image = drawn(shape, radii=radii, rotation=rotation, position=position, size=32)
    expected = supersampled(shape, *radii, rotation, position, 32)
    # A line through a pixel leaves the count of points beside it off by less than 1/64.
    assert np.abs(image[2] / 255 - expected).max() < 1 / 64
    assert np.abs(image[2] / 255 - expected).mean() < 1e-3


@pytest.mark.parametrize("size", [16, 64, 300])
def test_circles_are_within_a_two_thousandth_of_exact(size):
    """Of every column of pixels the sum is known, by the integral of the circle's height."""
    radius = size / 4
    image = drawn(CIRCLE, radii=(radius, 0), rotation=0.0, position=(0, 0), size=size)
    x = np.arange(size // 2 + 1) - radius
    height = np.sqrt(np.maximum(radius**2 - x**2, 0))
    integral = x * height + radius**2 * np.arcsin(x / radius)
    columns = image[1].astype(float).sum(0)[: size // 2] / 255
    partial = ((image[1] > 0) & (image[1] < 255)).sum(0)[: size // 2]
    assert (np.abs(columns - np.diff(integral)) <= partial * (1 / 510 + 1 / 2000)).all()


def test_a_square_on_the_grid_has_sharp_edges():
    image = drawn(SQUARE, radii=(4, 0), rotation=math.pi / 4, position=(0.25, 0.5), size=24)
    expected = np.zeros((24, 24), np.uint8)
    expected[8:16, 4:12] = 255
    np.testing.assert_array_equal(image[1], expected)


def test_a_square_between_the_pixels_covers_shares_of_them():
    image = drawn(SQUARE, radii=(4, 0), rotation=math.pi / 4, position=(4.2 / 16, 0.5), size=24)
    assert image[1, 12, 3:14].tolist() == [0, 204, *[255] * 7, 51, 0]


@pytest.mark.parametrize("shape", range(10), ids=SHAPES)
@pytest.mark.parametrize("corner", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_bounding_box_may_touch_the_edges_and_never_leaves_the_image(shape, corner):
    rotation = 0.3
    image = drawn(shape, rotation=rotation, position=corner)
    left, up, right, down = half_extents(shape, 9.3, 14.1, rotation)
    rows, columns = (np.flatnonzero(image[1].any(axis)) for axis in (1, 0))
    for found, corner_at, width in (
        (columns, corner[0], left + right),
        (rows, corner[1], up + down),
    ):
        low = corner_at * (64 - width)
        # The very tip of a shape may cover too little of a pixel to show.
        assert 0 <= found.min() - math.floor(low) <= 1
        assert 0 <= math.ceil(low + width) - 1 - found.max() <= 1
    assert image[1].sum() / 255 == pytest.approx(area(shape, 9.3, 14.1), abs=0.1)


@pytest.mark.parametrize("name", COLOURS)
def test_the_inside_has_exactly_the_colour_and_the_rest_is_black(name):
    image = drawn(SHAPES.index("polygon[9]"), colour=list(COLOURS).index(name))
    pixels, counts = np.unique(image.reshape(3, -1).T, axis=0, return_counts=True)
    # All pixels lie inside that a circle 1.5 pixels smaller reaches.
    assert pixels[-1].tolist() == list(COLOURS[name])
    assert counts[-1] > math.pi * (9.3 - 1.5) ** 2
    assert pixels[0].tolist() == [0, 0, 0]
    assert counts[0] > 64**2 - math.pi * (10 + 1.5) ** 2
    assert (pixels[:, np.array(COLOURS[name]) == 0] == 0).all()


def test_a_whole_turn_of_a_polygon_changes_nothing():
    third = 2 * math.pi / 3
    np.testing.assert_array_equal(drawn(TRIANGLE), drawn(TRIANGLE, rotation=0.7 + third))


def test_only_an_ellipse_has_a_second_radius():
    for shape, name in enumerate(SHAPES):
        same = np.array_equal(drawn(shape, radii=(9, 9)), drawn(shape, radii=(9, 12)))
        assert same == (name != "ellipse")


def test_the_images_of_a_batch_do_not_touch_each_other():
    rng = np.random.default_rng(5)
    arguments = (
        rng.integers(0, 10, 300),
        rng.integers(0, 3, 300),
        rng.uniform(6, 16, (300, 2)),
        rng.uniform(0, 7, 300),
        rng.uniform(0, 1, (300, 2)),
    )
    together = draw_shapes(*arguments)
    for row in (0, 63, 64, 299):
        np.testing.assert_array_equal(together[row], draw_shapes(*(a[[row]] for a in arguments))[0])


def test_no_shapes_give_no_images():
    empty = np.zeros(0, int)
    images = draw_shapes(empty, empty, np.zeros((0, 2)), empty, np.zeros((0, 2)), size=9)
    assert images.shape == (0, 3, 9, 9)


# ---------------------------------------------------------------------------- the data


def test_there_are_thirty_classes_by_colour_then_shape(source):
    assert source.kind == "image"
    assert len(CLASS_NAMES) == len(set(CLASS_NAMES)) == 30
    assert source.train.class_names == source.test.class_names == CLASS_NAMES
    assert (CLASS_NAMES[0], CLASS_NAMES[11], CLASS_NAMES[29]) == (
        "cyan circle",
        "gray ellipse",
        "magenta polygon[10]",
    )


def test_a_target_says_the_colour_and_the_size_of_the_area(images, classes):
    brightest = images.max((2, 3))
    for name, rgb in COLOURS.items():
        rows = [CLASS_NAMES[c].startswith(name) for c in classes]
        assert (brightest[rows] == rgb).all()
    # Triangles alone cover 3·tan(60°)·r²; the largest of all others is the square of 4·r².
    triangles = classes % 10 == TRIANGLE
    covered = (images.max(1) / images.max((1, 2, 3))[:, None, None]).sum((1, 2))
    assert covered[triangles].max() > 4 * 16**2 > covered[~triangles].max() * 0.999


def test_the_mean_pixel_is_that_of_the_measured_data(images):
    means = images.mean((2, 3))
    error = means.std(0) / math.sqrt(len(means))
    assert (np.abs(means.mean(0) - (14.28, 14.40, 23.93)) < 4 * error + 0.1).all()


def test_as_many_pixels_are_partial_as_in_the_measured_data(images):
    level = images.max(1)
    full = level.max((1, 2))[:, None, None]
    partial = ((level > 0) & (level < full)).sum((1, 2))
    assert np.median(partial) == pytest.approx(90, abs=3)
    assert partial.min() == pytest.approx(40, abs=3)
    assert partial.max() == pytest.approx(205, abs=6)


def test_shapes_are_balanced_and_colours_uniform(source, classes):
    assert np.bincount(classes % 10).tolist() == [400] * 10
    assert np.bincount(source.test.targets % 10).tolist() == [80] * 10
    expected, deviation = 4_000 / 3, math.sqrt(4_000 * 2 / 9)
    assert (np.abs(np.bincount(classes // 10) - expected) < 4 * deviation).all()


def test_counts_per_shape_differ_by_at_most_one():
    source = load_shapes(count=37, size=8, test=0)
    counts = np.bincount(source.train.targets % 10, minlength=10)
    assert counts.sum() == 37
    assert set(counts) == {3, 4}


def test_a_fifth_is_for_testing_unless_said_otherwise(source):
    assert (len(source.train), len(source.test)) == (3_200, 800)
    assert torch.cat([source.train.index, source.test.index]).tolist() == list(range(4_000))
    assert len(load_shapes(count=40, size=8, test=3).test) == 3
    assert load_shapes(count=40, size=8, test=0).test is None
    assert load_shapes(count=1).test is None


def test_the_seed_decides_everything():
    first, again, other = (load_shapes(count=60, size=16, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert torch.equal(first.train.targets, again.train.targets)
    assert not torch.equal(first.train.inputs, other.train.inputs)


def test_these_numbers_stay_what_they_are():
    train = load_shapes(count=20, seed=7).train
    assert train.targets[:8].tolist() == [0, 11, 12, 23, 24, 5, 26, 17]
    sums = [305096, 70410, 88476, 79664, 99596, 210198, 143618, 119799]
    assert train.inputs.sum((1, 2, 3))[:8].tolist() == sums


def test_an_image_depends_on_its_place_and_not_on_the_count(images):
    few = load_shapes(count=30, test=0).train.inputs
    np.testing.assert_array_equal(few.numpy(), images[:30])


@pytest.mark.parametrize("size", [8, 33, 200])
def test_another_size_shows_the_same_scene(size, source):
    other = load_shapes(count=20, size=size, test=0).train
    assert other.inputs.shape == (20, 3, size, size)
    assert torch.equal(other.targets, source.train.targets[:20])
    share = other.inputs.double().mean((1, 2, 3))
    torch.testing.assert_close(
        share, source.train.inputs[:20].double().mean((1, 2, 3)), rtol=0.02, atol=0.02
    )


# ------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"count": 0}, ValueError, "count must be at least 1. Got 0"),
        ({"count": 2.5}, TypeError, "count must be an integer. Got 2.5"),
        ({"count": True}, TypeError, "count must be an integer. Got True"),
        ({"count": 5, "size": 7}, ValueError, "size must be at least 8. Got 7"),
        ({"count": 5, "test": -1}, ValueError, "test must be at least 0. Got -1"),
        ({"count": 5, "test": 5}, ValueError, "test must be less than count, 5, .* Got 5"),
        ({"count": 5, "seed": -1}, ValueError, "seed must be at least 0. Got -1"),
    ],
)
def test_unusable_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        load_shapes(**arguments)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"shape": 10}, ValueError, r"shape must lie in 0..9. Got 10..10"),
        ({"shape": 1.0}, TypeError, r"shape must be integers of shape \(N\). Got float64"),
        ({"colour": -1}, ValueError, r"colour must lie in 0..2. Got -1..-1"),
        ({"radii": (9, 9, 9)}, ValueError, r"radii must have shape \(1, 2\). Got \(1, 3\)"),
        ({"radii": (0, 9)}, ValueError, r"radii must be above 0. Got .* for shape 0"),
        ({"radii": (33, 9)}, ValueError, "radii are too large: a shape is 66.0 pixels wide"),
        ({"rotation": math.nan}, ValueError, "rotation must be finite. Got nan"),
        ({"position": (0.5, 1.1)}, ValueError, r"position must lie in 0..1, .* \[0.5 1.1\]"),
    ],
)
def test_shapes_that_cannot_be_drawn_are_named(changed, error, message):
    with pytest.raises(error, match=message):
        drawn(**{"shape": CIRCLE, **changed})


def test_there_must_be_a_colour_for_every_shape():
    with pytest.raises(ValueError, match="colour must have one entry a shape, 2. Got 1"):
        draw_shapes([0, 0], [1], [[9, 9]] * 2, [0, 0], [[0, 0]] * 2)
