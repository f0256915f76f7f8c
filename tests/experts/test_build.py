import json
import signal
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import attar
from attar.core import registry
from attar.core.errors import AttarError, DamagedFile
from attar.core.files import read_tensors, write_tensors
from attar.core.signals import STOPS, Held, Interrupted, raised
from attar.core.streams import EVALUATION
from attar.core.text import duration
from attar.data import Split
from attar.data.augment import DSA
from attar.experts import PAPER, SMALL, Manifest, Progress, Schedule, Trajectories, experts, find, missing, trajectory
from attar.experts.trajectory import checkpoint, epochs_done
from attar.nets import network
from attar.nets.train import Trainer, Training
from attar.plan import needs_of
from tests.known import HANG, digits, gaussians, images, python

DATA = gaussians(20)
NET = network("mlp-d1w5", DATA.shape, 3)
QUICK = Training(batch=16, lr=0.05, weight_decay=0, schedule="constant")


def made(folder: Path, **options: Any) -> Trajectories:
    asked = {k: options.pop(k) for k in registry.fields(Schedule) if k in options}
    schedule = registry.make(Schedule, {"trajectories": 2, "epochs": 3, "training": QUICK} | asked, "experts")
    return experts(options.pop("data", DATA), options.pop("network", NET), schedule, folder=folder, **options)


def vectors(store: Trajectories) -> Tensor:
    return torch.stack([torch.stack([store.vector(i, e) for e in range(store.epochs + 1)]) for i in range(len(store))])


def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*arguments: Any) -> Tensor:
        raise AssertionError("trained")

    monkeypatch.setattr(Trainer, "step", step)


def test_a_trajectory_is_an_initialisation_and_what_every_epoch_made_of_it(tmp_path: Path) -> None:
    # With all examples in one batch an epoch is one step of plain gradient descent.
    training = Training(batch=99, lr=0.1, momentum=0, weight_decay=0, schedule="constant")
    store = made(tmp_path, training=training)
    everything = vectors(store)
    assert everything.shape == (2, 4, NET.size)
    for each in everything:
        for before, after in pairwise(each):
            slope = torch.func.grad(lambda t: cross_entropy(NET(t, DATA.x), DATA.y))(before)
            assert torch.allclose(after, before - 0.1 * slope, atol=1e-6)
    assert not torch.allclose(everything[0, 0], everything[1, 0])


def test_an_epoch_shows_every_example_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    real: Callable[..., Tensor] = Trainer.step

    def step(self: Trainer, gen: torch.Generator, index: Tensor) -> Tensor:
        seen.append(index[0])
        return real(self, gen, index)

    monkeypatch.setattr(Trainer, "step", step)
    store = made(tmp_path, trajectories=1, epochs=2, training=replace(QUICK, batch=20))
    assert store.manifest.training.steps == len(seen) == 6
    for epoch in (torch.cat(seen[:3]), torch.cat(seen[3:])):
        assert sorted(epoch.tolist()) == list(range(60))
    assert not torch.equal(seen[0], seen[3])


def test_checkpoints_in_the_first_epoch_are_the_parameters_after_those_steps(tmp_path: Path) -> None:
    training = replace(QUICK, batch=4)  # 15 steps an epoch
    store = made(tmp_path / "a", training=training, every=6)
    assert store.times == (0, 6 / 15, 12 / 15, 1, 2, 3)
    assert torch.equal(vectors(store), vectors(made(tmp_path / "b", training=training, every=0)))
    (halfway,) = made(tmp_path / "c", training=replace(QUICK, batch=10), trajectories=1, epochs=1, every=3).times[1:-1]
    assert halfway == 0.5
    # An epoch draws its order first, so the steps of the first one can be repeated by hand.
    gen = torch.Generator().manual_seed(store.manifest.experts[0].seed)
    trainer = Trainer(NET, DATA, store.manifest.training, NET.init(gen)[None])
    for number, part in enumerate(torch.randperm(60, generator=gen).split(4), 1):
        trainer.step(gen, part[None])
        if number in (6, 12, 15):
            assert torch.equal(store.vector(0, number / 15), trainer.theta[0])


@pytest.mark.parametrize(("batch", "every"), [(1, 6), (4, 1), (60, 0)])
def test_by_default_the_first_epoch_has_ten_checkpoints_where_it_has_the_steps(batch: int, every: int) -> None:
    manifest = Manifest.of(Schedule(1, 2, replace(QUICK, batch=batch)), DATA, NET)
    assert manifest.every == every
    assert " --every" not in manifest.command
    assert "--every 0" in Manifest.of(Schedule(1, 2, replace(QUICK, batch=4), every=0), DATA, NET).command


def test_the_same_request_gives_the_same_bits_and_another_seed_gives_others(tmp_path: Path) -> None:
    a, b, c = (vectors(made(tmp_path / name, seed=seed)) for name, seed in (("a", 4), ("b", 4), ("c", 5)))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_processes_train_what_one_process_trains(tmp_path: Path) -> None:
    assert torch.equal(vectors(made(tmp_path / "a")), vectors(made(tmp_path / "b", workers=2)))


def test_the_manifest_says_what_the_vectors_are(tmp_path: Path) -> None:
    store = made(tmp_path, data=Split(DATA, DATA[:30], DATA[30:]))
    said = json.loads((tmp_path / "manifest.json").read_text())
    assert said["fingerprint"] == DATA.fingerprint
    assert (said["data"], said["network"], said["classes"]) == ("gaussians", "mlp-d1w5", 3)
    assert (said["epochs"], said["trajectories"], said["dtype"]) == (3, 2, "float32")
    assert said["training"]["steps"] == 3 * (60 // 16)
    assert len({expert["seed"] for expert in said["experts"]}) == 2
    for index, expert in enumerate(store.manifest.experts):
        guesses = NET(store.vector(index, 3), DATA.x[:30]).argmax(1)
        assert expert.accuracy == pytest.approx(float((guesses == DATA.y[:30]).float().mean()))
        assert expert.cost.cpu > 0


def test_augmentation_and_loss_are_those_of_the_training(tmp_path: Path) -> None:
    data = images(6)
    net = network("convnet-d1w4", data.shape, 3)
    ways = [QUICK, replace(QUICK, augment="flip-crop"), replace(QUICK, loss="squared")]
    ends = [
        made(tmp_path / str(k), data=data, network=net, trajectories=1, training=training).vector(0, 3)
        for k, training in enumerate(ways)
    ]
    assert not torch.allclose(ends[0], ends[1])
    assert not torch.allclose(ends[0], ends[2])


RUN = """
import sys, torch
from attar.experts import Schedule, experts, trajectory
from attar.nets.train import Training
from tests.known import gaussians
torch.set_num_threads(1)
real = trajectory.write_tensors
def save(path, *content):
    real(path, *content)
    print(path.name, flush=True)
    sys.stdin.readline()  # one line is leave for one epoch
trajectory.write_tensors = save
training = Training(batch=4, lr=0.01, schedule="cosine")
experts(gaussians(100), "mlp-d1w5", Schedule(2, 8, training, seed=1), folder=sys.argv[1])
"""


def test_a_build_that_is_killed_goes_on_after_its_last_epoch_to_the_same_bits(tmp_path: Path) -> None:
    data, training = gaussians(100), Training(batch=4, lr=0.01, schedule="cosine")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    schedule = Schedule(2, 8, training, seed=1)
    undisturbed = experts(data, "mlp-d1w5", schedule, folder=whole)
    identity = undisturbed.manifest.identity
    for index, epoch in ((0, 5), (1, 3)):
        process = python(RUN, broken, stdin=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        while epochs_done(checkpoint(broken, index), identity) < epoch:
            assert process.stdout.readline(), process.communicate()[1]
            process.stdin.write("\n")
            process.stdin.flush()
        process.send_signal(signal.SIGKILL)  # somewhere in the next epoch, for there is no leave for another
        process.communicate(timeout=HANG)
        assert process.returncode == -signal.SIGKILL
    with pytest.raises(AttarError, match="not a complete trajectory"):
        Trajectories.open(broken)
    told: list[Progress] = []
    resumed = experts(data, "mlp-d1w5", schedule, folder=broken, watch=told.append)
    assert told[0].done >= 8 + 3  # nothing that was finished is done again
    assert told[-1] == Progress(16, 16, 0.0)
    assert torch.equal(vectors(undisturbed), vectors(resumed))
    assert sorted(path.name for path in broken.iterdir()) == sorted(path.name for path in whole.iterdir())


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_within_an_epoch_saves_and_the_build_resumes_to_the_same_bits(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = {"training": replace(QUICK, batch=4), "trajectories": 1}  # 15 steps an epoch
    whole = made(tmp_path / "whole", **fine)
    real: Callable[..., Tensor] = Trainer.step

    def step(self: Trainer, gen: torch.Generator, index: Tensor) -> Tensor:
        if self.number == 21:
            signal.raise_signal(number)
        return real(self, gen, index)

    with monkeypatch.context() as patch, raised():
        patch.setattr(Trainer, "step", step)
        with pytest.raises(Interrupted, match="Stopped after 1 of 3 epochs"):
            made(tmp_path / "a", **fine, checkpoint_every=1000)
    assert read_tensors(checkpoint(tmp_path / "a", 0))[0]["trainer.number"] == 22
    again = made(tmp_path / "a", **fine)
    assert torch.equal(vectors(again), vectors(whole))
    assert again.manifest.experts[0].loss == whole.manifest.experts[0].loss


def test_checkpoints_are_as_frequent_as_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saves: list[int] = []
    real: Callable[..., None] = trajectory.write_tensors

    def write(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
        saves.append(int(tensors["trainer.number"]))
        real(path, tensors, header)

    monkeypatch.setattr(trajectory, "write_tensors", write)
    for name, seconds, expected in (("a", 0, [*range(1, 10)]), ("b", 1000, [9]), ("c", None, [3, 6, 9])):
        saves.clear()
        made(tmp_path / name, trajectories=1, checkpoint_every=seconds)
        assert saves == expected
    with pytest.raises(AttarError, match="checkpoint_every must be"):
        made(tmp_path / "d", checkpoint_every=-1)


def test_no_trajectory_has_random_numbers_of_an_evaluation(tmp_path: Path) -> None:
    manifest = Manifest.of(Schedule(8, 3, QUICK), DATA, NET)
    runs = [trajectory._Run(trajectory.Work(DATA, None, NET, manifest, tmp_path), index) for index in range(8)]
    seeds = [run.gen.initial_seed() for run in runs]
    assert len(set(seeds)) == 8
    assert not any(seed & EVALUATION for seed in seeds)


def test_a_checkpoint_within_an_epoch_of_other_examples_is_not_used(tmp_path: Path) -> None:
    work = trajectory.Work(DATA, None, NET, Manifest.of(Schedule(1, 3, QUICK), DATA, NET), tmp_path, 0)
    run = trajectory._Run(work, 0)
    run.advance(Held())
    for name, change in (("order", lambda order: order + 1), ("losses", lambda losses: losses[:0])):
        run.save(path := checkpoint(tmp_path, 0))
        tensors, header = read_tensors(path)
        write_tensors(path, tensors | {name: change(tensors[name])}, header)
        with pytest.raises(DamagedFile, match="its order and losses are not those of step 1"):
            trajectory._Run(work, 0).resume(path)


def test_a_checkpoint_that_is_cut_off_costs_only_its_trajectory(tmp_path: Path) -> None:
    tmp_path.joinpath("a").mkdir()
    path = checkpoint(tmp_path / "a", 0)
    path.write_bytes(b"\x10\x00\x00")
    with pytest.warns(UserWarning, match=r"trained from its start"):
        store = made(tmp_path / "a")
    assert torch.equal(vectors(store), vectors(made(tmp_path / "b")))
    assert not path.exists()


def test_what_is_there_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(tmp_path)
    no_training(monkeypatch)
    assert torch.equal(vectors(made(tmp_path)), vectors(first))


def test_more_trajectories_train_only_those(tmp_path: Path) -> None:
    made(tmp_path / "a")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").glob("*.safetensors")}
    more = made(tmp_path / "a", trajectories=3)
    assert len(more) == 3
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").glob("*.safetensors")}
    assert before.items() <= after.items()
    assert torch.equal(vectors(more), vectors(made(tmp_path / "b", trajectories=3)))


def test_fewer_trajectories_are_the_first_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = made(tmp_path, trajectories=3)
    no_training(monkeypatch)
    one = made(tmp_path, trajectories=1)
    assert (len(one), len(one.manifest.experts)) == (1, 1)
    assert torch.equal(vectors(one), vectors(three)[:1])
    assert len(Trajectories.open(tmp_path)) == 3


def test_a_trajectory_that_is_cut_off_is_named_and_built_again_alone(tmp_path: Path) -> None:
    whole = vectors(made(tmp_path))
    broken, other = tmp_path / "trajectory-0001.safetensors", tmp_path / "trajectory-0000.safetensors"
    broken.write_bytes(broken.read_bytes()[:-100])
    untouched = other.stat().st_mtime_ns
    with pytest.raises(AttarError, match=r"trajectory-0001.*attar experts gaussians --network mlp-d1w5 .*again"):
        Trajectories.open(tmp_path)
    with pytest.warns(UserWarning, match=r"trajectory-0001.*kept as .*trained again"):
        assert torch.equal(vectors(made(tmp_path)), whole)
    assert other.stat().st_mtime_ns == untouched


@pytest.mark.parametrize(
    "change",
    [
        {"data": gaussians(20, seed=1)},
        {"network": "linear"},
        {"epochs": 4},
        {"training": replace(QUICK, lr=0.1)},
        {"dtype": "float16"},
        {"seed": 3},
    ],
)
def test_a_folder_of_other_experts_is_refused_and_kept(tmp_path: Path, change: dict[str, Any]) -> None:
    store = made(tmp_path)
    with pytest.raises(AttarError, match="choose another folder"):
        made(tmp_path, **change)
    assert torch.equal(vectors(Trajectories.open(tmp_path)), vectors(store))


def test_the_same_request_is_found_again_and_another_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path))
    schedule = Schedule(1, 2, QUICK)
    first = experts(DATA, "mlp-d1w5", schedule)
    assert first.folder.parent == tmp_path
    other = experts(DATA, "mlp-d1w5", replace(schedule, epochs=3))
    assert other.folder != first.folder
    no_training(monkeypatch)
    assert torch.equal(vectors(experts(DATA, "mlp-d1w5", schedule)), vectors(first))
    assert torch.equal(vectors(find(DATA, NET, schedule)), vectors(first))


def test_experts_that_are_not_there_are_asked_for_with_a_command_and_a_time(tmp_path: Path) -> None:
    with pytest.raises(AttarError) as refused:
        find(DATA, NET, Schedule(30, 40, SMALL.training), root=tmp_path)
    assert "`attar experts gaussians --network mlp-d1w5 --trajectories 30 --epochs 40`" in str(refused.value)
    assert "takes about" in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    assert "`attar experts gaussians --network mlp-d1w5`" in str(missing(DATA, NET))


def test_a_store_with_too_few_trajectories_is_not_what_was_asked(tmp_path: Path) -> None:
    experts(DATA, NET, Schedule(1, 1, QUICK), root=tmp_path)
    with pytest.raises(AttarError, match="--trajectories 2"):
        find(DATA, NET, Schedule(2, 1, QUICK), root=tmp_path)


def test_a_module_of_one_s_own_needs_a_folder(tmp_path: Path) -> None:
    store = made(tmp_path, network=lambda: nn.Sequential(nn.Linear(6, 3)), workers=2)
    assert store.size == 21
    with pytest.raises(AttarError, match=r"give attar\.experts a folder"):
        experts(DATA, lambda: nn.Sequential(nn.Linear(6, 3)), root=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trajectories": 0}, "experts: trajectories: Input should be greater than or equal to 1, got 0"),
        ({"epochs": 0}, "epochs: Input should be greater than or equal to 1"),
        ({"every": 4}, r"every must lie in 0\.\.3, the steps of an epoch, got 4"),
        ({"every": -1}, "every: Input should be greater than or equal to 0"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"dtype": "float8"}, "dtype: Input should be 'float32' or 'float16'"),
        ({"network": "mpl"}, "Unknown network 'mpl'"),
    ],
)
def test_bad_requests_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(AttarError, match=message):
        made(tmp_path, **change)


def test_training_that_diverges_says_so(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="try a smaller learning rate"):
        made(tmp_path, training=replace(QUICK, lr=1e30))


def test_numbers_too_large_for_half_precision_are_refused(tmp_path: Path) -> None:
    far = DATA.map(lambda x: 1e3 * x)
    with pytest.raises(AttarError, match="do not fit into float16: store float32"):
        made(tmp_path, data=far, network="linear", dtype="float16", training=replace(QUICK, lr=1e3))


def test_half_precision_changes_vectors_in_the_fourth_digit_and_few_predictions(tmp_path: Path) -> None:
    split = digits()
    training = replace(QUICK, batch=64)
    full, half = (
        made(tmp_path / dtype, data=split.train, network="mlp-d1w32", trajectories=1, training=training, dtype=dtype)
        for dtype in ("float32", "float16")
    )
    net = network("mlp-d1w32", split.shape, 10)
    for epoch in range(4):
        a, b = full.vector(0, epoch), half.vector(0, epoch)
        assert b.dtype == torch.float32
        assert 0 < float((a - b).norm() / a.norm()) < 2**-11  # the rounding of 11 binary digits
    guesses = [net(store.vector(0, 3), split.val.x).argmax(1) for store in (full, half)]
    assert float((guesses[0] == guesses[1]).float().mean()) > 0.99
    sizes = [(store.folder / "trajectory-0000.safetensors").stat().st_size for store in (full, half)]
    assert sizes[1] < 0.52 * sizes[0]


def test_experts_learn(tmp_path: Path) -> None:
    split = digits()
    store = experts(split, "mlp-d1w32", Schedule(1, 8, replace(SMALL.training, batch=32)), folder=tmp_path)
    assert store.manifest.experts[0].accuracy is not None
    assert store.manifest.experts[0].accuracy > 0.85


def test_the_schedules_are_the_documented_ones() -> None:
    assert (PAPER.trajectories, PAPER.epochs) == (100, 50)
    assert (PAPER.training.batch, PAPER.training.lr, PAPER.training.momentum) == (256, 0.01, 0)
    assert replace(SMALL.training, momentum=0, augment=DSA) == PAPER.training
    assert (SMALL.every, PAPER.every) == (None, 0)


def test_the_default_schedule_ends_with_the_last_epoch_that_a_method_reads() -> None:
    methods = [registry.build(name, {}) for name in attar.methods("condense", "bayes") if needs_of(name).experts]
    asked = {type(method).__name__: (method.max_epoch, getattr(method, "ahead", None)) for method in methods}
    early = None  # which is in any store
    assert asked == {"BPCCD": (early, None), "BPCFKL": (0, early), "BPCW": (0, early), "MTT": (0, 1)}
    assert SMALL.epochs == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "a second"), (90, "90 seconds"), (600, "10 minutes"), (9e3, "2 hours"), (2e5, "2 days")],
)
def test_a_time_is_said_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_inference_may_start_from_the_last_epochs_and_says_so(tmp_path: Path) -> None:
    store = made(tmp_path)
    still = Training(steps=1, lr=1e-12, momentum=0, weight_decay=0)
    posterior = attar.infer(DATA, draws=6, network=NET, training=still, start="experts", experts=store, seed=1)
    ends = torch.stack([store.vector(index, 3) for index in range(2)])
    nearest = torch.cdist(posterior.theta, ends).min(1)
    assert float(nearest.values.max()) < 1e-4
    assert set(nearest.indices.tolist()) == {0, 1}
    assert posterior.notes["start"] == "experts"
    with pytest.raises(AttarError, match=r"mlp-d1w5 .* asked for is linear"):
        attar.infer(DATA, network="linear", start="experts", experts=store)
