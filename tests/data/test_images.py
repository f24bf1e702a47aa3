"""Decoding images of all kinds, one at a time and many at once."""

import multiprocessing
import os
import struct
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from image_files import encoded, photo, write_image
from PIL import Image

from coarse2fine._util.parallel import filled_rows
from coarse2fine.data.sources.images import centre_box, decode, decode_all, image_sizes

PICTURE = photo(12, 8)


def grey(value, mode="L"):
    return Image.new(mode, (3, 2), value)


# ------------------------------------------------------------------------------------ modes


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_give_the_pixels_that_were_saved(format):
    assert np.array_equal(decode(encoded(PICTURE, format)), PICTURE)


@pytest.mark.parametrize("format", ["JPEG", "WEBP"])
def test_lossy_formats_give_nearly_the_pixels_that_were_saved(format):
    picture = photo(120, 80)
    pixels = decode(encoded(picture, format, quality=95))
    assert np.abs(pixels.astype(int) - picture).mean() < 3


def test_a_file_gives_what_its_bytes_do(tmp_path):
    path = write_image(tmp_path / "a.png", PICTURE)
    assert np.array_equal(decode(path), decode(path.read_bytes()))


@pytest.mark.parametrize(
    ("image", "colour"),
    [
        (grey(77), (77, 77, 77)),
        (grey(1, "1"), (255, 255, 255)),
        (grey((77, 10), "LA"), (77, 77, 77)),
        (grey((1, 2, 3, 0), "RGBA"), (1, 2, 3)),
        (grey((9, 99, 199), "RGB"), (9, 99, 199)),
        (grey((10, 200, 30), "RGB").quantize(2), (10, 200, 30)),
    ],
    ids=["grey", "bits", "grey with alpha", "alpha", "rgb", "palette"],
)
def test_every_mode_becomes_rgb_and_transparency_is_dropped(image, colour):
    assert decode(encoded(image)).tolist() == [[list(colour)] * 3] * 2


def test_a_palette_with_transparent_colours_gives_its_colours():
    image = Image.new("P", (3, 2), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    data = encoded(image, transparency=bytes([255, 128]))
    assert decode(data).tolist() == [[[10, 20, 30]] * 3] * 2


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_greys_of_16_bits_are_scaled_to_8(format):
    values = np.array([[0, 128, 129, 257, 32768, 65535]], np.uint16)
    found = decode(encoded(values, format))
    assert found[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
    assert (found == found[..., :1]).all()


def test_cmyk_becomes_the_colour_it_means():
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    assert np.abs(decode(encoded(red, "JPEG")).astype(int) - [255, 0, 0]).max() < 10


def test_floating_point_greys_are_refused():
    with pytest.raises(
        ValueError, match=r"a.tif cannot be decoded \(its greys have no fixed range"
    ):
        decode(encoded(np.ones((2, 2), np.float32), "TIFF"), name="a.tif")


def test_of_an_animation_the_first_picture_is_taken():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode(data)[0, 0].tolist() == [255, 0, 0]


# -------------------------------------------------------------------------------- orientation

UPRIGHT = np.kron(np.array([[0, 80, 160], [240, 40, 120]], np.uint8), np.ones((16, 16), np.uint8))


def stored_as(orientation):
    """The upright picture as a camera held in that way stores it."""
    turned = {
        1: UPRIGHT, 2: UPRIGHT[:, ::-1], 3: UPRIGHT[::-1, ::-1], 4: UPRIGHT[::-1],
        5: UPRIGHT.T, 6: np.rot90(UPRIGHT), 7: UPRIGHT[::-1, ::-1].T, 8: np.rot90(UPRIGHT, -1),
    }  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    return Image.fromarray(np.ascontiguousarray(turned[orientation])), exif


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(format, orientation):
    image, exif = stored_as(orientation)
    data = encoded(image, format, exif=exif)
    assert np.abs(decode(data)[..., 0].astype(int) - UPRIGHT).max() < 12
    assert image_sizes([data]).tolist() == [[32, 48]]
    small = decode(data, (16, 24))[..., 0]
    assert np.abs(small[4::8, 4::8].astype(int) - UPRIGHT[8::16, 8::16]).max() < 12


@pytest.mark.parametrize("exif", [b"MM\0", b"XX\0*\0\0\0\x08", b"II*\0\xff\xff\xff\xff", b""])
def test_an_orientation_that_cannot_be_read_counts_as_none(exif):
    data = encoded(PICTURE, "WEBP", lossless=True, exif=b"Exif\0\0" + exif)
    assert np.array_equal(decode(data), PICTURE)


# -------------------------------------------------------------------------------------- sizes


def test_the_shorter_side_is_resized_and_the_centre_cropped():
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 200
    assert (decode(encoded(wide), (10, 10))[:, 1:-1] == 200).all()
    assert (decode(encoded(wide.transpose(1, 0, 2)), (10, 10))[1:-1] == 200).all()


def test_what_has_the_right_shorter_side_is_only_cropped():
    picture = photo(13, 8)
    assert np.array_equal(decode(encoded(picture), (8, 8)), picture[:, 2:10])


def test_small_images_grow():
    assert decode(encoded(PICTURE), (30, 20)).shape == (30, 20, 3)


@given(
    width=st.integers(1, 500),
    height=st.integers(1, 500),
    aspect=st.floats(0.2, 5),
    share=st.floats(0.1, 1),
)
def test_a_centred_box_lies_inside_and_has_its_shape(width, height, aspect, share):
    left, top, right, bottom = centre_box(width, height, aspect, share)
    assert 0 <= left <= right <= width + 1e-9
    assert 0 <= top <= bottom <= height + 1e-9
    assert (right - left) / (bottom - top) == pytest.approx(aspect)
    assert max((right - left) / width, (bottom - top) / height) == pytest.approx(share)


def test_large_jpegs_are_decoded_no_finer_than_needed_and_look_the_same():
    picture = photo(640, 480)
    found = decode(encoded(picture, "JPEG", quality=95), (60, 80))
    expected = Image.fromarray(picture).resize((80, 60), Image.Resampling.BILINEAR)
    assert np.abs(found.astype(int) - np.asarray(expected)).mean() < 3


# ---------------------------------------------------------------------------------- bad files


def test_empty_data_is_refused(tmp_path):
    path = tmp_path / "a.png"
    path.touch()
    with pytest.raises(ValueError, match=r"a.png is empty; replace or remove it"):
        decode(path)


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"row 3 is not an image that Pillow can read; replace"):
        decode(b"some text", name="row 3")


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_images_that_are_cut_off_are_refused(format):
    data = encoded(photo(64, 64), format)
    with pytest.raises(ValueError, match=r"^cut "):
        decode(data[: len(data) // 2], name="cut")


@given(data=st.data())
def test_broken_images_give_pixels_or_a_value_error(data):
    content = bytearray(
        encoded(PICTURE, data.draw(st.sampled_from(["PNG", "JPEG", "GIF", "TIFF"])))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        outcome = decode(bytes(content), (4, 4), name="broken").shape
    except ValueError as error:
        outcome = str(error)
    assert outcome == (4, 4, 3) or outcome.startswith("broken ")


def test_a_decompression_bomb_is_refused():
    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    with pytest.raises(
        ValueError, match=r"^bomb.png cannot be decoded \(Image size.*exceeds limit"
    ):
        decode(bomb, name="bomb.png")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.png"):
        decode(tmp_path / "nothing.png")


# ------------------------------------------------------------------------------- many at once


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_many_images_are_decoded_in_order(workers):
    pictures = [photo(6, 5, seed) for seed in range(20)]
    images = decode_all([encoded(picture) for picture in pictures], workers=workers)
    assert images.dtype == torch.uint8
    assert np.array_equal(images.permute(0, 2, 3, 1), np.stack(pictures))


def test_images_of_two_sizes_need_one_to_be_brought_to(tmp_path):
    files = [write_image(tmp_path / f"{w}.png", photo(w, 8)) for w in (8, 9)]
    with pytest.raises(ValueError, match=r"9.png is 9×8 pixels, but .*8.png is 8×8; give a size"):
        decode_all(files)
    assert decode_all(files, (8, 8)).shape == (2, 3, 8, 8)
    assert image_sizes(files).tolist() == [[8, 8], [8, 9]]


@pytest.mark.parametrize("workers", [1, 3])
def test_of_several_broken_images_the_first_is_named(workers):
    items = [encoded(PICTURE)] * 20
    items[7] = items[8] = items[12] = b"broken"
    with pytest.raises(ValueError, match="image 7 is not an image"):
        decode_all(items, workers=workers)


def test_no_images_at_all_are_refused():
    with pytest.raises(ValueError, match="there are no images"):
        decode_all([])


def test_a_process_that_dies_is_reported():
    with pytest.raises(ChildProcessError, match="ended with exit code 3; memory may"):
        filled_rows(lambda _: os._exit(3), (4,), np.uint8, workers=2)


def _decoded_inside(queue):
    queue.put(decode_all([encoded(PICTURE)] * 300).shape)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_images_are_decoded_in_a_process_that_may_have_no_children():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_decoded_inside, args=(queue,), daemon=True)
    process.start()
    assert queue.get() == (300, 3, 8, 12)
    process.join()
