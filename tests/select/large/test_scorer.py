"""Images and texts of tables are seen through one network that is fitted on a sample."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import nn

import attar
from attar.core.errors import AttarError
from attar.data import InParts
from attar.select import large
from attar.select.kcenter import KCenter
from attar.select.large.scorer import sampled
from tests.known import digits

QUICK = attar.Training(steps=3, batch=32)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    train = digits().train[:120]
    pixels = (train.spec.stored(train.x).clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    rows = []
    for picture in pixels[:, 0]:
        png = BytesIO()
        Image.fromarray(picture).save(png, "PNG")
        rows.append(png.getvalue())
    pq.write_table(pa.table({"image": rows, "y": train.y.numpy()}), tmp_path / "i.parquet", row_group_size=30)
    return tmp_path / "i.parquet"


def test_image_bytes_are_seen_through_a_named_network(images: Path) -> None:
    asked = {"features": "image", "label": "y", "size": 6, "part": 64, "training": QUICK}
    found = attar.select(images, "k-center", network="convnet-d1w4", **asked)
    assert len(set(found.indices.tolist())) == 6
    again = attar.select(images, "k-center", network="convnet-d1w4", workers=1, **asked)
    assert torch.equal(found.scores, again.scores)
    with pytest.raises(AttarError, match="Scoring these examples needs labels"):
        attar.select(images, "k-center", features="image", size=6)


class Bright(nn.Module):
    """Its only feature is the mean pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(1, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x.flatten(1).mean(1, keepdim=True))


def test_a_trained_module_of_the_user_is_used_as_it_is_and_needs_no_labels(images: Path) -> None:
    found = attar.select(images, "k-center", features="image", label="y", network=Bright(), size=3)
    pixels = np.concatenate(
        [batch.x for batch in InParts(images, "image").read(InParts(images, "image").table.segments(), 0)]
    )
    means = pixels.reshape(120, -1).mean(1, dtype=np.float64)
    first, second = found.indices.tolist()[:2]
    assert first == int(np.abs(means - means.mean()).argmin())
    assert second == int(np.abs(means - means[first]).argmax())


def test_texts_go_through_the_text_pipeline(tmp_path: Path) -> None:
    texts = [f"{'good fine' if k % 2 else 'bad poor'} film number {k}" for k in range(80)]
    pq.write_table(
        pa.table({"text": texts, "y": [k % 2 for k in range(80)]}), tmp_path / "t.parquet", row_group_size=20
    )
    source = InParts(tmp_path / "t.parquet", "text", "y")
    found = attar.select(source, "herding", per_class=2, training=QUICK, part=64)
    assert found.classes == ["0", "0", "1", "1"]


def test_the_network_is_the_same_for_all_parts_whatever_the_number_of_rows_in_a_part(images: Path) -> None:
    columns = InParts(images, "image", "y")
    plans = [large.plan(columns, KCenter(), size=4, part=part, training=QUICK) for part in (64, 128)]
    first, second = (plan.scorer() for plan in plans)
    assert first is not None
    assert second is not None
    assert first.theta is not None
    assert second.theta is not None
    assert torch.equal(first.theta, second.theta)


def test_a_sample_is_of_different_rows_in_order_and_of_all_if_there_are_few(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((5000, 1), np.float32))
    jobs = large.plan(InParts(tmp_path / "x.npy"), KCenter(), size=1).jobs
    for most in (100, 4990):
        found = sampled(jobs, most, seed=0)
        assert len(found) == most
        assert bool((np.diff(found) > 0).all())
        assert 0 <= found[0] <= found[-1] < 5000
    assert not np.array_equal(sampled(jobs, 100, seed=0), sampled(jobs, 100, seed=1))
    assert np.array_equal(sampled(jobs, 5000, seed=0), np.arange(5000))
