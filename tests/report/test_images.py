from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from attar.core.errors import AttarError
from attar.data import Spec
from attar.report.images import GAP, contact_sheet, data_uri, heat_strip, is_image, standardise, strip, tile
from attar.report.terminal import ansi


def test_a_tile_keeps_values_and_cuts_what_lies_outside() -> None:
    image = tile(torch.tensor([[[0.0, 0.5], [1.7, -3.0]]]), scale=3)
    assert image.size == (6, 6)
    assert [image.getpixel(at) for at in ((0, 0), (5, 0), (0, 5), (5, 5))] == [0, 128, 255, 0]


def test_a_colour_tile_keeps_its_channels() -> None:
    image = tile(torch.tensor([1.0, 0.0, 0.2]).reshape(3, 1, 1), scale=2)
    assert image.mode == "RGB"
    assert image.getpixel((1, 1)) == (255, 0, 51)


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(AttarError, match="shape"):
        tile(torch.zeros(2, 4, 4), scale=1)


def test_a_strip_breaks_into_lines_with_transparent_gaps() -> None:
    image = strip(torch.ones(5, 1, 4, 4), columns=3, scale=2)
    assert image.size == (3 * 8 + 2 * GAP, 2 * 8 + GAP)
    assert image.getpixel((0, 0)) == (255, 255, 255, 255)
    assert image.getpixel((8, 0)) == (0, 0, 0, 0)
    assert image.getpixel((image.width - 1, image.height - 1)) == (0, 0, 0, 0)


def test_a_contact_sheet_has_a_row_for_every_class_with_examples() -> None:
    x = torch.zeros(4, 1, 20, 20)
    two = contact_sheet(x, torch.tensor([0, 0, 1, 1]), ["a", "b", "none"], scale=1)
    four = contact_sheet(x, torch.tensor([0, 1, 2, 3]), ["a", "b", "c", "d"], scale=1)
    assert two.width - four.width == pytest.approx(20 + GAP, abs=2)
    assert four.height > 1.7 * two.height
    dark = [two.convert("L").getpixel((two.width - 12, y)) == 0 for y in range(two.height)]
    assert sum(dark) == 40


def test_a_contact_sheet_of_nothing_is_refused() -> None:
    with pytest.raises(AttarError, match="no examples"):
        contact_sheet(torch.zeros(0, 1, 4, 4), torch.zeros(0, dtype=torch.int64), ["a"])


def test_heat_is_blue_below_white_at_and_orange_above_the_mean() -> None:
    image = heat_strip(torch.tensor([[-2.0, 0.0, 9.0]]))
    below, at, above = np.asarray(image)[0, :: image.width // 3].tolist()
    assert below[2] > below[0]
    assert at == [247, 247, 247]
    assert above[0] > above[2]


def test_standardised_columns_have_zero_mean_and_constant_ones_are_zero() -> None:
    z = standardise(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
    assert torch.equal(z, torch.tensor([[-1.0, 0.0], [1.0, 0.0]]).double())


def test_a_data_uri_holds_the_same_picture() -> None:
    image = strip(torch.rand(3, 3, 5, 5, generator=torch.Generator().manual_seed(0)))
    head, _, body = data_uri(image).partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(BytesIO(base64.b64decode(body))).tobytes() == image.tobytes()


def test_a_terminal_shows_two_pixels_a_character_and_leaves_gaps_alone() -> None:
    image = Image.new("RGBA", (2, 3), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    image.putpixel((1, 1), (0, 0, 255, 255))
    image.putpixel((1, 2), (0, 0, 0, 0))
    shown = ansi(image)
    assert shown.plain == "▀▄\n▀ \n"
    colours = [(str(s.style.color.triplet), s.style.bgcolor) for s in shown.spans]  # type: ignore[union-attr]
    assert len(colours) == 3
    assert colours[0][1] is not None
    assert colours[2][1] is None


@pytest.mark.parametrize(("shape", "right"), [((1, 8, 8), True), ((3, 8, 8), True), ((2, 8, 8), False), ((3,), False)])
def test_the_spec_says_whether_examples_are_pictures(shape: tuple[int, ...], right: bool) -> None:
    assert is_image(Spec.of(shape, 2).element) is right
