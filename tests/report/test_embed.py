from __future__ import annotations

import base64
import json
from io import BytesIO

import numpy as np
import torch
from PIL import Image

from attar.report.embed import as_json, cut, packed, policy, sheet
from tests.report.reading import EVIL


def test_no_text_ends_the_element_that_json_stands_in() -> None:
    value = {EVIL: ["</SCRIPT>", "<!--", "\u2028"]}
    text = as_json(value)
    assert "<" not in text
    assert json.loads(text) == value


def test_only_the_pages_own_script_runs_and_only_a_live_page_connects() -> None:
    assert "script-src" not in policy("")
    assert policy("a").count("script-src 'sha256-") == 1
    assert policy("a") != policy("b")
    assert "connect-src" not in policy("a")
    assert policy("a", connect=True).endswith("; connect-src 'self'")


def test_numbers_come_back_as_16_bit_words() -> None:
    numbers = torch.tensor([[0, 1], [258, 65535]])
    assert np.frombuffer(base64.b64decode(packed(numbers)), "<u2").tolist() == [0, 1, 258, 65535]


def test_a_sheet_has_one_tile_for_each_image_in_order() -> None:
    gray = torch.linspace(0, 1, 5)[:, None, None, None].expand(5, 1, 8, 4)
    found = sheet(gray)
    image = Image.open(BytesIO(base64.b64decode(found["uri"].partition(",")[2]))).convert("L")
    assert (found["width"], found["height"]) == (4, 8)
    for i in range(5):
        x, y = i % found["across"] * 4 + 2, i // found["across"] * 8 + 4
        assert abs(image.getpixel((x, y)) - 255 * i / 4) < 12  # type: ignore[operator]


def test_many_images_are_shrunk_until_they_fit() -> None:
    found = sheet(torch.rand(40, 3, 10, 20), most=40 * 50)
    assert (found["width"], found["height"]) == (10, 5)


def test_long_texts_are_cut() -> None:
    assert cut(["abc", "abcdef"], 4) == ["abc", "abc…"]
    assert "\u202e" not in cut(["a\u202eb"])[0]
