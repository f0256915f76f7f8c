"""Trained experts are never lost: not by a file that cannot be read, nor by one that is damaged, nor by an upgrade."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError, DamagedFile
from attar.core.files import read_tensors, write_tensors
from attar.experts import Schedule, Trajectories, experts
from attar.experts.store import shard
from attar.experts.trajectory import checkpoint
from attar.nets.train import Trainer, Training
from tests.known import HANG, ROOT, Stop, gaussians, new_python, python

DATA = gaussians(20)
QUICK = Training(batch=16, lr=0.05, weight_decay=0, schedule="constant")


def made(folder: Path) -> Trajectories:
    return experts(DATA, "mlp-d1w5", Schedule(2, 3, QUICK), folder=folder)


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint of a trajectory whose training ended in its second of three epochs."""
    real: Callable[..., Tensor] = Trainer.step

    def step(self: Trainer, gen: torch.Generator, index: Tensor) -> Tensor:
        if self.number == 4:  # an epoch has three steps
            raise Stop
        return real(self, gen, index)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", step)
        with pytest.raises(Stop):
            made(folder)
    return checkpoint(folder, 0)


def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*arguments: Any) -> Tensor:
        raise AssertionError("trained")

    monkeypatch.setattr(Trainer, "step", step)


def vectors(store: Trajectories) -> Tensor:
    return torch.stack([torch.stack([store.vector(i, e) for e in range(store.epochs + 1)]) for i in range(len(store))])


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Builds with 0, 1, 2 ... free file descriptors until that succeeds, and says why each build failed and what it changed.
FEW = """
import json, os, resource, sys
from pathlib import Path
from attar.core.errors import AttarError
from attar.experts import Schedule, experts
from attar.nets.train import Training
from tests.known import gaussians
data, training = gaussians(20), Training(batch=16, lr=0.05, weight_decay=0, schedule="constant")
def made(folder):
    experts(data, "mlp-d1w5", Schedule(2, 3, training), folder=folder)
def content():
    return {path.name: path.read_bytes() for path in Path(sys.argv[2]).glob("trajectory-*")}
made(sys.argv[1])  # so that all that is loaded late is loaded
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
before = content()
for free in range(20):
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(free):
        os.close(held.pop())
    try:
        made(sys.argv[2])
        break
    except AttarError as error:
        said = str(error)
    finally:
        for handle in held:
            os.close(handle)
    print(json.dumps([said, content() == before]))
else:
    sys.exit("never succeeded")
"""


def failures(warm: Path, folder: Path) -> list[str]:
    """What builds say that may open too few files; none of them may change a trajectory or a checkpoint."""
    process = python(FEW, warm, folder)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    said = [json.loads(line) for line in out.splitlines()]
    assert all(unchanged for _, unchanged in said), said
    return [message for message, _ in said]


def test_trajectories_survive_builds_that_may_open_too_few_files(tmp_path: Path) -> None:
    made(tmp_path / "warm")
    made(tmp_path / "store")
    before = content(tmp_path / "store")
    said = failures(tmp_path / "warm", tmp_path / "store")
    assert any("Could not read" in message and "trajectory-0000.safetensors" in message for message in said)
    assert all("`ulimit -n`" in message for message in said)
    assert content(tmp_path / "store") == before  # costs and all: nothing was trained again


def test_a_checkpoint_survives_builds_that_may_open_too_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "warm")
    stopped(tmp_path / "store", monkeypatch)
    said = failures(tmp_path / "warm", tmp_path / "store")
    assert any("Could not read" in message and "trajectory-0000.checkpoint" in message for message in said)
    assert torch.equal(vectors(Trajectories.open(tmp_path / "store")), vectors(Trajectories.open(tmp_path / "warm")))


@pytest.mark.parametrize("name", ["trajectory-0001.safetensors", "trajectory-0001.checkpoint", "manifest.json"])
@pytest.mark.parametrize("target", ["/not/mounted", "/proc/self/mem"])
def test_a_file_that_cannot_be_read_now_is_kept_and_nothing_is_trained(
    tmp_path: Path, name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    if name.endswith(".checkpoint"):
        shard(tmp_path, 1).unlink()
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    left = sorted(tmp_path.iterdir())
    no_training(monkeypatch)
    with pytest.raises(AttarError, match=rf"Could not read .*{name} .*the file is unchanged: check the disk"):
        made(tmp_path)
    assert sorted(tmp_path.iterdir()) == left
    assert str(path.readlink()) == target


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    broken = bytearray(path.read_bytes())
    broken[9] ^= 1  # in the header
    path.write_bytes(broken)


def rename_store(path: Path) -> None:
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | {"identity": "another"})


def shorten(path: Path) -> None:
    tensors, header = read_tensors(path)
    write_tensors(path, {"theta": tensors["theta"][:-1]}, header)


def forget(path: Path) -> None:
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, {"identity": header["identity"]})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut, "not a complete safetensors file"),
        (flip, "not a complete safetensors file"),
        (rename_store, "belongs to another store"),
        (shorten, r"it has shape \(5, .*\), not \(6, "),
        (forget, "Invalid JSON"),
    ],
)
def test_a_damaged_trajectory_is_kept_aside_and_trained_again(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    whole = vectors(made(tmp_path))
    path = shard(tmp_path, 1)
    for number in (1, 2):
        damage(path)
        damaged, other = path.read_bytes(), shard(tmp_path, 0).stat().st_mtime_ns
        with pytest.raises(DamagedFile, match=rf"trajectory-0001\.safetensors is not a complete trajectory .*{reason}"):
            Trajectories.open(tmp_path)
        assert path.read_bytes() == damaged  # who only looks moves nothing
        with pytest.warns(UserWarning, match=rf"{reason}.*kept as {path.name}\.unreadable-{number}, and .*again"):
            again = made(tmp_path)
        assert torch.equal(vectors(again), whole)
        assert path.with_name(f"{path.name}.unreadable-{number}").read_bytes() == damaged
        assert shard(tmp_path, 0).stat().st_mtime_ns == other
    made(tmp_path)  # without a warning


def lose_generator(path: Path) -> None:
    tensors, header = read_tensors(path)
    write_tensors(path, {name: tensor for name, tensor in tensors.items() if name != "gen"}, header)


def lose_vectors(path: Path) -> None:
    tensors, header = read_tensors(path)
    write_tensors(path, tensors | {"vectors": tensors["vectors"][:0]}, header)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut, "not a complete safetensors file"),
        (flip, "not a complete safetensors file"),
        (rename_store, "belongs to another store"),
        (forget, "corrupt or incompatible"),
        (lose_generator, "corrupt or incompatible"),
        (lose_vectors, r"vectors are \(0, .*\) after epoch 1"),
    ],
)
def test_a_damaged_checkpoint_is_kept_aside_and_its_trajectory_is_trained_from_its_start(
    tmp_path: Path, damage: Callable[[Path], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stopped(tmp_path / "a", monkeypatch)
    damage(path)
    damaged = path.read_bytes()
    with pytest.warns(UserWarning, match=rf"{reason}.*kept as trajectory-0000\.checkpoint\.unreadable-1"):
        store = made(tmp_path / "a")
    assert torch.equal(vectors(store), vectors(made(tmp_path / "b")))
    assert path.with_name(f"{path.name}.unreadable-1").read_bytes() == damaged


def test_what_a_later_version_says_of_an_expert_does_not_make_it_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vectors(made(tmp_path))
    tensors, header = read_tensors(shard(tmp_path, 0))
    more = json.loads(header["expert"]) | {"calibration": 0.1}
    write_tensors(shard(tmp_path, 0), tensors, header | {"expert": json.dumps(more)})
    no_training(monkeypatch)
    assert torch.equal(vectors(made(tmp_path)), whole)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [('"steps"', '"nesterov": true, "steps"', "this version of attar .*nesterov"), ("{", "", "is not JSON")],
)
def test_a_manifest_of_a_later_version_or_a_damaged_one_is_refused_and_without_it_the_trajectories_are_found(
    tmp_path: Path, old: str, new: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vectors(made(tmp_path))
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace(old, new, 1))
    before = content(tmp_path)
    with pytest.raises(AttarError, match=rf"{reason}.*: move it away and run .*keeps all matching trajectories"):
        made(tmp_path)
    assert content(tmp_path) == before
    path.unlink()
    no_training(monkeypatch)
    assert torch.equal(vectors(made(tmp_path)), whole)


UPGRADED = """
import sys, attar
from dataclasses import replace
from attar.experts import Schedule, experts, find
from attar.experts import Manifest
from attar.nets import network
from attar.nets.train import Training
from tests.known import gaussians
data = gaussians(20)
net = network("mlp-d1w5", data.shape, 3)
training = Training(batch=16, lr=0.05, weight_decay=0, schedule="constant")
store = find(data, net, Schedule(2, 3, training), root=sys.argv[1])
assert attar.__file__.startswith(sys.path[1]), attar.__file__
assert store.manifest.training.nesterov is False
same = Manifest.of(Schedule(2, 3, training), data, net).identity
other = Manifest.of(Schedule(2, 3, replace(training, nesterov=True)), data, net).identity
print(store.manifest.identity == same, same == other, float(store.vector(1, 3).sum()))
"""


def test_an_upgrade_that_adds_a_field_to_training_finds_and_reads_what_was_trained_before(tmp_path: Path) -> None:
    store = experts(DATA, "mlp-d1w5", Schedule(2, 3, QUICK), root=tmp_path / "stores")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "src" / "attar" / "nets" / "train.py"
    last = next(line for line in file.read_text().splitlines() if line.startswith("    loss: str = Field("))
    file.write_text(file.read_text().replace(last, f"{last}\n    nesterov: bool = False"))
    code = f"import sys; sys.path.insert(1, {str(tmp_path / 'src')!r})\n" + UPGRADED
    out, err = new_python(code, tmp_path / "stores").communicate(timeout=HANG)
    assert out.split() == ["True", "False", str(float(store.vector(1, 3).sum()))], err
