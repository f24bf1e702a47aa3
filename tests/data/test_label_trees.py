"""Labels of any depth: names of a given tree's nodes, columns of several depths, nested folders."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from image_files import encoded, photo, write_image

from coarse2fine import Hierarchy
from coarse2fine.data import load_data
from coarse2fine.data.sampling import balanced_class_weights, sample, warn_of_absent_classes
from coarse2fine.data.split import Source, Split

TREE = {"animal": ["cat", "dog"], "thing": ["car", "bus"]}


@pytest.fixture
def tree():
    return Hierarchy.from_taxonomy(TREE)


def names_of(split):
    """What each sample is labelled with."""
    return split.hierarchy.decode(split.targets)


# ------------------------------------------------------------------- splits and what they hold


def mixed(tree, targets):
    return Split(
        torch.arange(len(targets))[:, None].float(), targets, tree.class_names, None, None, tree
    )


def test_targets_may_be_nodes_of_the_tree_and_nothing_beyond_them(tree):
    split = mixed(tree, tree.encode(["cat", "animal", "(any)", "bus"]))
    assert split.targets.tolist() == [0, 5, 4, 3]
    assert split.has_class.tolist() == [True, False, False, True]
    assert (split.num_labels, split.num_with_class) == (7, 2)
    with pytest.raises(
        ValueError, match=r"or be a node of the hierarchy, up to 6. Got 7 for sample 1"
    ):
        mixed(tree, [0, 7])
    with pytest.raises(ValueError, match="the hierarchy has 4 classes, but class_names has 2"):
        Split(torch.zeros(1, 1), [0], ("a", "b"), hierarchy=tree)


def test_rows_keep_their_tree_and_those_with_a_class_need_none(tree):
    split = mixed(tree, [5, 0, 6, 2])
    assert names_of(split.take([2, 1])) == ["thing", "cat"]
    fine = split.with_class()
    assert (fine.targets.tolist(), fine.index.tolist(), fine.hierarchy) == ([0, 2], [1, 3], None)
    plain = Split(torch.zeros(2, 1), [0, 1], ("a", "b"))
    assert plain.with_class() is plain


def test_a_label_of_any_depth_is_a_stratum_of_its_own(tree):
    targets = np.repeat([0, 1, 2, 3, 5], [10, 10, 10, 10, 20])
    data = sample(Source("table", mixed(tree, targets)), val_share=0.2, test_share=0.5, seed=3)
    counts = [np.bincount(part.targets, minlength=7).tolist() for part in (data.test, data.val)]
    assert counts == [[5, 5, 5, 5, 0, 10, 0], [1, 1, 1, 1, 0, 2, 0]]
    few = sample(Source("table", mixed(tree, targets)), train_size=15, val_share=0)
    assert np.bincount(few.train.targets, minlength=7).tolist() == [3, 3, 3, 3, 0, 3, 0]


def test_the_fingerprint_tells_trees_apart(tree):
    other = Hierarchy.from_taxonomy({"a": ["cat", "car"], "b": ["dog", "bus"]}, tree.class_names)
    targets = [0, 1, 2, 3, 5] * 4
    one, two = (sample(Source("table", mixed(h, targets))).fingerprint() for h in (tree, other))
    assert one != two


def test_weights_of_classes_count_a_coarse_label_for_its_classes_in_equal_parts(tree):
    # cat 2 + 4/2 + 2/4, dog 1 + 4/2 + 2/4, car 3 + 2/4, bus 0 + 2/4
    targets = [0, 0, 1, 2, 2, 2, 5, 5, 5, 5, 4, 4]
    weights = balanced_class_weights(targets, 4, tree.nodes)
    assert weights == pytest.approx(12 / (4 * np.array([4.5, 3.5, 3.5, 0.5])))
    own = np.array([2, 1, 3, 0])
    of_group, of_any = weights[:2].mean(), weights.mean()
    assert (own @ weights + 4 * of_group + 2 * of_any) / 12 == pytest.approx(1)


def test_a_class_with_coarse_labels_alone_is_named_as_absent(tree):
    data = sample(Source("table", mixed(tree, [0, 1, 2, 6] * 10)))
    with pytest.warns(UserWarning, match="1 of 4 classes have no training samples: bus") as caught:
        warn_of_absent_classes(data)
    assert len(caught) == 2  # and none to validate on


# --------------------------------------------------------------------- names of a given tree

ROWS = [("x", "label"), (1, "cat"), (2, "animal"), (3, "bus"), (4, "thing"), (5, "(any)")]


def test_a_column_may_name_any_node_of_a_given_tree(write, tree):
    train = load_data(write("rows.csv", ROWS), hierarchy=tree).train
    assert names_of(train) == ["cat", "animal", "bus", "thing", "(any)"]
    assert train.class_names == ("cat", "dog", "car", "bus")


def test_labels_that_are_all_classes_are_read_as_without_a_tree(write, tree):
    path = write("rows.csv", [("x", "label"), (1, "dog"), (2, "cat"), (3, "cat")])
    train = load_data(path, hierarchy=tree).train
    assert (train.class_names, train.targets.tolist(), train.hierarchy) == (
        ("cat", "dog"),
        [1, 0, 0],
        None,
    )


def test_a_tree_is_only_read_for_labels_that_are_words(write):
    def read():
        raise AssertionError

    path = write("rows.csv", [("x", "label"), (1, "0"), (2, "1"), (3, "0")])
    assert load_data(path, hierarchy=read).train.class_names == ("0", "1")


def test_an_unknown_name_is_told_with_its_row_and_the_nearest_one(write, tree):
    path = write("rows.csv", [*ROWS, (6, "animl")])
    with pytest.raises(
        ValueError,
        match=r"rows.csv, row 6: the label 'animl' is none of .* Did you mean 'animal'\?",
    ):
        load_data(path, hierarchy=tree)
    with pytest.raises(
        ValueError, match=r"train: the label 'buss' of sample 2 .* Did you mean 'bus'\?"
    ):
        load_data((np.zeros((3, 2)), ["cat", "animal", "buss"]), hierarchy=tree)


@pytest.mark.parametrize("target", [(), ("group", "group")])
def test_columns_of_labels_are_named_once(write, target):
    path = write("rows.csv", [("x", "group", "kind"), (1, "a", "b"), (2, "c", "")])
    with pytest.raises(ValueError, match="target must name one column or more, and each of them"):
        load_data(path, target=target)


def test_a_folder_that_the_tree_does_not_know_is_told_with_the_nearest(tmp_path, tree):
    for name in ("cat", "animal", "buss"):
        write_image(tmp_path / name / "1.png", photo(8, 8))
    with pytest.raises(ValueError, match=r"/buss is of a class .* Did you mean 'bus'\?"):
        load_data(tmp_path, hierarchy=tree)


def test_a_label_that_is_missing_among_python_objects_is_named(tree):
    with pytest.raises(TypeError, match="strings. Got None for sample 2"):
        load_data((np.zeros((3, 2)), ["cat", "animal", None]), hierarchy=tree)


def test_a_label_may_be_any_name_that_a_node_is_known_by(write):
    # A pet is an animal of a level of its own, and the bike is the only one with two wheels.
    tree = Hierarchy.from_taxonomy(
        {"animal": {"pet": ["cat", "dog"]}, "thing": {"car": ["van", "bus"], "2": {"1": ["bike"]}}}
    )
    assert len(tree.levels) == 3
    labels = ["cat", "pet", "van", "2", "animal"]
    meant = ["cat", "animal", "van", "bike", "animal"]
    rows = write("rows.csv", [("x", "label"), *enumerate(labels)])
    inputs = np.zeros((5, 2), np.float32)
    for data in (rows, (inputs, labels)):
        train = load_data(data, hierarchy=tree).train
        assert (names_of(train), train.class_names) == (meant, tree.class_names)
    only = load_data((inputs, ["cat", "dog", "van", "bus", "pet"]), hierarchy=tree).train
    assert names_of(only) == ["cat", "dog", "van", "bus", "animal"]
    finest = load_data((inputs, ["cat", "2", "van", "bus", "1"]), hierarchy=tree).train
    assert (finest.hierarchy, finest.targets.tolist()) == (None, [0, 4, 2, 3, 4])


def test_python_objects_may_have_names_of_any_node_too(tree):
    inputs = np.zeros((3, 2), np.float32)
    source = load_data(
        (inputs, ["cat", "thing", "dog"]), (inputs, ["bus", "car", "animal"]), hierarchy=tree
    )
    assert names_of(source.train) == ["cat", "thing", "dog"]
    assert names_of(source.test) == ["bus", "car", "animal"]


def test_with_given_class_names_the_tree_follows_their_order(tree):
    names = ["bus", "car", "dog", "cat"]
    train = load_data(
        (np.zeros((2, 2)), ["cat", "animal"]), class_names=names, hierarchy=tree
    ).train
    assert train.class_names == tuple(names)
    assert names_of(train) == ["cat", "animal"]
    numbers = load_data((np.zeros((2, 2)), [3, 0]), class_names=names, hierarchy=tree).train
    assert numbers.hierarchy is None  # integers are classes
    with pytest.raises(ValueError, match=r"targets must lie in 0..3"):
        load_data((np.zeros((2, 2)), [3, 4]), class_names=names, hierarchy=tree)


def test_splits_with_nodes_are_taken_as_they_are_if_all_are_of_one_tree(tree):
    train, test = mixed(tree, [0, 5, 2]), mixed(tree, [1, 6])
    source = load_data(train, test)
    assert source.num_coarse == 2
    other = mixed(
        Hierarchy.from_taxonomy({"a": ["cat", "car"], "b": ["dog", "bus"]}, tree.class_names),
        [0, 5],
    )
    with pytest.raises(
        ValueError, match="test is a Split whose targets are nodes of another hierarchy"
    ):
        load_data(train, other)


# ---------------------------------------------------------------- columns of several depths

COLUMNS = [
    ("text", "group", "kind"),
    ("a b", "animal", "dog"),
    ("c d", "animal", ""),
    ("e f", "thing", "car"),
    ("g h", "animal", "cat"),
    ("i j", "plant", ""),
    ("k l", "thing", "bus"),
]


def test_columns_of_several_depths_make_a_tree(write):
    source = load_data(write("rows.csv", COLUMNS), target=("group", "kind"))
    assert source.kind == "text"
    assert source.train.class_names == ("bus", "car", "cat", "dog", "plant")
    # There is nothing finer than plant, so that is a class.
    assert names_of(source.train) == ["dog", "animal", "car", "cat", "plant", "bus"]
    assert source.train.sentences[1] == "c d"


def test_columns_of_labels_are_no_features(write):
    rows = [("x", "group", "kind"), (1, "1", "10"), (2, "1", "9"), (3, "1", ""), (4, "2", "8")]
    source = load_data(write("rows.csv", rows), target=["group", "kind"])
    assert source.columns == ("x",)
    assert source.train.class_names == ("8", "9", "10")
    assert names_of(source.train) == ["10", "9", "1", "8"]


def test_json_lines_and_parquet_may_lack_labels_as_null(tmp_path):
    rows = pa.table({"x": [1.0, 2.0, 3.0], "group": ["a", "a", "b"], "kind": ["p", None, "q"]})
    rows = pa.concat_tables([rows, rows.set_column(2, "kind", pa.array(["r", "p", "q"]))])
    pq.write_table(rows, tmp_path / "rows.parquet")
    lines = ['{"x": 1, "g": "a", "k": "p"}', '{"x": 2, "g": "a"}']
    lines += ['{"x": 3, "g": "b", "k": "r"}', '{"x": 4, "g": "a", "k": "q"}']
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    train = load_data(tmp_path / "rows.parquet", target=("group", "kind")).train
    assert names_of(train) == ["p", "a", "q", "r", "p", "q"]
    train = load_data(tmp_path / "rows.jsonl", target=("g", "k")).train
    assert names_of(train) == ["p", "a", "r", "q"]


@pytest.mark.parametrize("is_encoded", [False, True])
def test_images_in_parquet_may_have_names_of_any_node(tmp_path, tree, is_encoded):
    images = [{"bytes": encoded(photo(8, 8, seed)), "path": None} for seed in range(4)]
    names = ["cat", "thing", "dog", "bus"]
    labels = pa.array(names).dictionary_encode() if is_encoded else pa.array(names)
    pq.write_table(pa.table({"img": images, "label": labels}), tmp_path / "train.parquet")
    train = load_data(tmp_path / "train.parquet", hierarchy=tree).train
    assert names_of(train) == names
    assert np.array_equal(train.inputs[1].permute(1, 2, 0), photo(8, 8, 1))
    plain = load_data(tmp_path / "train.parquet").train
    assert (plain.class_names, plain.targets.tolist()) == (tuple(sorted(names)), [1, 3, 2, 0])
    other = load_data(tmp_path / "train.parquet", class_names=names).train
    assert other.targets.tolist() == [0, 1, 2, 3]


def test_images_in_parquet_may_have_columns_of_several_depths(tmp_path):
    images = [{"bytes": encoded(photo(8, 8, seed)), "path": None} for seed in range(4)]
    rows = {"img": images, "coarse": [0, 0, 1, 0], "fine": [2, None, 3, 4]}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    train = load_data(tmp_path / "train.parquet", target=("coarse", "fine")).train
    assert train.class_names == ("2", "3", "4")
    assert train.targets.tolist() == [0, 4, 1, 2]
    assert np.array_equal(train.inputs[1].permute(1, 2, 0), photo(8, 8, 1))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ("m", "thing", "dog"),
            "row 7: 'dog' is below thing, but below animal in .*row 1; a class is in one place",
        ),
        (
            ("m", "", "dog"),
            (
                "row 7: the label in the column 'group' is missing; only the finest labels may be, "
                "and the columns go from the coarsest to the finest: group, kind. Fill it in"
            ),
        ),
        (("m", "", ""), "row 7: the label in the column 'group' is missing"),
    ],
)
def test_rows_that_contradict_others_or_lack_a_group_are_refused(write, row, message):
    with pytest.raises(ValueError, match=message):
        load_data(write("rows.csv", [*COLUMNS, row]), target=("group", "kind"))


def test_other_parts_have_the_labels_of_the_training(write):
    train = write("train.csv", COLUMNS)
    write("test.csv", [COLUMNS[0], ("x", "animal", "cat"), ("y", "thing", "")])
    assert names_of(load_data(train, target=("group", "kind")).test) == ["cat", "thing"]
    write("test.csv", [COLUMNS[0], ("x", "animal", "cats")])
    message = (
        r"test.csv, row 1: 'animal > cats' is not among the labels .* Did you mean 'animal > cat'\?"
    )
    with pytest.raises(ValueError, match=message):
        load_data(train, target=("group", "kind"))


def test_a_group_with_one_class_is_that_class(write):
    rows = [("x", "group", "kind"), (1, "a", "p"), (2, "a", ""), (3, "b", "q"), (4, "b", "r")]
    train = load_data(write("rows.csv", rows), target=("group", "kind")).train
    assert names_of(train) == ["p", "p", "q", "r"]


# ---------------------------------------------------------------------------- nested folders


def write_images(folder, *names):
    for seed, name in enumerate(names):
        write_image(folder / name, photo(8, 8, seed))


NESTED = ("animal/cat/1.png", "animal/cat/2.png", "animal/dog/1.png", "animal/9.png", "plant/1.png")


def test_an_image_beside_folders_is_one_of_their_classes(tmp_path):
    write_images(
        tmp_path, *NESTED, "thing/road/car/1.png", "thing/road/bus/2.png", "thing/road/3.png"
    )
    train = load_data(tmp_path, target="folders").train
    assert train.class_names == ("bus", "car", "cat", "dog", "plant")
    by_file = ["animal", "cat", "cat", "dog", "plant", "thing", "bus", "car"]
    assert names_of(train) == by_file
    assert np.array_equal(train.inputs[0].permute(1, 2, 0), photo(8, 8, 3))


def test_without_being_asked_for_it_the_outermost_folders_are_the_classes(tmp_path):
    write_images(tmp_path, *NESTED)
    train = load_data(tmp_path).train
    assert (train.class_names, train.hierarchy) == (("animal", "plant"), None)


def test_parts_of_nested_folders_share_a_tree(tmp_path):
    write_images(
        tmp_path,
        *(f"train/{name}" for name in NESTED),
        "test/animal/cat/7.png",
        "test/animal/8.png",
    )
    source = load_data(tmp_path, target="folders")
    assert names_of(source.test) == ["animal", "cat"]
    write_images(tmp_path, "test/animal/cta/7.png")
    with pytest.raises(
        ValueError, match=r"cta: 'animal > cta' is not among .* Did you mean 'animal > cat'"
    ):
        load_data(tmp_path, target="folders")


@pytest.mark.parametrize(
    ("names", "folder", "message"),
    [
        (["1.png"], "", r"1.png lies in no folder of a class"),
        (
            ["thing/cat/1.png"],
            "",
            r"thing.cat: 'cat' is below thing, but below animal in .*animal.cat",
        ),
        ([], "animal/fox", r"fox holds no images"),
    ],
)
def test_what_is_no_tree_of_folders_is_refused(tmp_path, names, folder, message):
    write_images(tmp_path, *NESTED, *names)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    with pytest.raises(ValueError, match=message):
        load_data(tmp_path, target="folders")
