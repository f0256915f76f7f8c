"""Tables of the condensation benchmarks for the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable

import tables
from tables import noted, percent, result

from attar.assess.statistics import SPREAD, over_seeds
from attar.report.rows import rows
from attar.study import Study
from attar.study.cross import Crossings

#: Test accuracy on Fashion-MNIST, one and ten images per class: Table 12 of the paper on contrastive divergence.
PUBLISHED = {
    "dc": ("70.83", "81.93"),
    "dsa": ("70.45", "84.70"),
    "dm": ("71.92", "83.25"),
    "cafe": ("77.10", "83.00"),
    "cafe+dsa": ("73.70", "83.00"),
    "mtt": ("77.14", "88.76"),
}


def condensers() -> str:
    """The study on Fashion-MNIST with the published values, and how it was made."""
    if not (tables.RESULTS / "condensers" / "study.json").exists():
        return "No results are committed yet: `python -m benchmarks condensers` makes them."
    study = Study.load(tables.RESULTS / "condensers" / "study.json")
    config, found = study.config, rows(study)
    head = ("per class", "method", "test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s", "paper, %")
    lines = [
        (
            *result(row),
            dict(zip((1, 10), PUBLISHED.get(row.label, ()), strict=False)).get(row.per_class or 0, ""),
        )
        for row in found
    ]
    about = (
        f"Data: {study.data['name']}, {study.data['train']:,} training and {study.data['test']:,} test images. Means "
        f"over {len(found[0].runs)} seeds; {SPREAD}. {config['draws']} networks (`{config['network']}`) are trained "
        f"from scratch for {config['training']['steps']} steps each. The last column is Table 12 of the paper on "
        f"contrastive divergence: GPU, width 128, paper's protocol. Options and steps are those of "
        f"`benchmarks/recipes/condensers-small.toml`. Times are processor seconds of one thread on a shared machine, "
        f"without experts. Reproduce with `{study.command}`."
    )
    return noted(head, lines, about)


def kernel_ridge() -> str:
    """Coresets of kernel methods evaluated by kernel ridge regression, and others by changed training."""
    path = tables.RESULTS / "condensers" / "kernels.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks condensers` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    ridge = found["kernel_ridge"]
    near = zip(ridge["weak"], ridge["strong"], strict=True)
    measured = [(f"{weak['mean']:.3f}", f"{strong['mean']:.3f}") for weak, strong in near]
    ways = (
        (f"kernel ridge regression, {ridge['kernel']}", ridge["accuracy"], measured),
        ("networks, as for `label-solve`", found["regression"]["table"], None),
        ("networks, as for `dsa`", found["augmented"]["table"], None),
    )
    seeds = len(Study.load(tables.RESULTS / "condensers" / "study.json").groups()["uniform", 1])
    lines = [
        (str(row["per_class"]), row["method"], way, percent(row, seeds), *epsilon)
        for way, kept, epsilons in ways
        for row, epsilon in zip(kept, epsilons or [("", "")] * len(kept), strict=True)
    ]
    head = ("per class", "examples of", "trained by", "test accuracy, %", "weak ε", "strong ε")
    about = (
        f"Means over {seeds} seeds; {SPREAD}. The ε measure the distance, on test images, to the regression on "
        f"{ridge['real']:,} real images, which has an accuracy of {100 * ridge['accuracy_of_real']:.1f} %."
    )
    return noted(head, lines, about)


def kernel_transfer() -> str:
    """Images learnt with some kernels, evaluated with others."""
    path = tables.RESULTS / "kernel_transfer" / "kernel_transfer.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks kernel_transfer` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    names, setting = found["evaluated"], found["setting"]
    seeds = len(setting["seeds"])
    lines = [
        (
            row["learnt"],
            *(percent(row["accuracy"][name], seeds) for name in names),
            f"{sum(row['cpu']) / len(row['cpu']):.1f}",
        )
        for row in found["rows"]
    ]
    about = (
        f"{setting['data']}, {setting['per_class']} images per class; validation accuracy in percent on "
        f"{setting['validation_images']} images, means over {seeds} seeds; {SPREAD}. `kip` takes "
        f"{setting['descent']['steps']} steps of {setting['real_batch']} real images in every row. Reproduce with "
        f"`{found['command']}`."
    )
    return noted(("learnt with", *names, "learning, CPU s"), lines, about)


def transfer() -> str:
    """Other networks trained on the coresets of a ConvNet."""
    crossed = Crossings.load(tables.RESULTS / "table5")
    if crossed is None:
        return "No results are committed yet: `python -m benchmarks table5` makes them."
    lines = [
        (str(size), method, *(_percent(found[network]) if network in found else "–" for network in crossed.networks))
        for (method, size), found in crossed.rows()
    ]
    return noted(("per class", "method", *crossed.networks), lines, _about("table5"))


def _percent(values: list[float], spec: str = ".1f") -> str:
    return over_seeds([100 * value for value in values], spec)


def condense_step() -> str:
    """The cost of a step of gradient matching, against a loop over classes."""
    if not (tables.RESULTS / "condense_step").exists():
        return "No results are committed yet: `python -m benchmarks condense_step` makes them."
    found = json.loads((tables.RESULTS / "condense_step" / "condense_step.json").read_text(encoding="utf-8"))
    ways = ("plain", "plain, memory kept")
    setting = found["setting"]
    called = {part: f"{part}, {steps} network steps" for part, steps in setting["net_steps"].items()}
    lines = [
        (
            f"`{name}`",
            called[part],
            f"{one['seconds']['ours']['cpu']:.1f}",
            *(f"{one['seconds'][way]['cpu']:.1f}, {one['times_faster'][way]['cpu']:.2f} times" for way in ways),
            f"{one['largest_gap_of_losses']['float64']:.0e}",
            *(f"{one['largest_gap_of_losses']['rounding'][way]:.0e}" for way in ("ours", "plain")),
        )
        for name, parts in found["methods"].items()
        for part, one in parts.items()
    ]
    timed = ("attar", "loop over classes", "the same, freed memory kept")
    gaps = ("difference of losses", "rounding, attar", "rounding, loop")
    head = ("method", "part", *(f"{way}, CPU s" for way in timed), *gaps)
    about = (
        f"{setting['per_class']} synthetic and {setting['batch']} real images per class, `{setting['network']}`; one "
        f"thread. The difference is relative, in float64, the largest of three updates; rounding is the relative error "
        f"of the loss in float32 against float64. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def unrolling() -> str:
    """Memory and time of an unroll, against the plain graph."""
    path = tables.RESULTS / "unroll_memory" / "unroll_memory.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks unroll_memory` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, ways = found["setting"], ("attar", "graph kept")
    lines = [
        (
            number,
            *(f"{found['bytes'][way][number] / 1e6:.0f}" for way in ways),
            *(f"{found['cpu_seconds'][number][way]:.2f}" for way in ways),
            f"{ratio:.2f}",
        )
        for number, ratio in found["cpu_ratio"].items()
    ]
    head = ("steps", *(f"{way}, MB" for way in ways), *(f"{way}, CPU s" for way in ways), "times the time")
    about = (
        f"A loss of `dd` and its gradient, `{setting['network']}`, {setting['images']} images of 28x28 a step; peak "
        f"memory beyond that before; one thread, the least of {setting['rounds']} alternating rounds. Reproduce with "
        f"`{found['command']}`."
    )
    return noted(head, lines, about)


def width_gradients() -> str:
    """Gradients of images by the width of the network, relative to width 128."""
    path = tables.RESULTS / "width_gradients" / "width_gradients.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks width_gradients` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, widths = found["setting"], found["widths"]
    lines = [
        (f"`{name}`", *(f"{norm / norms[-1]:.2f}" for norm in norms), f"{found['power'][name]:.2f}")
        for name, norms in found["norms"].items()
    ]
    about = (
        f"Norm of the first gradient of one image per class of {setting['data']}, relative to width {widths[-1]}; "
        f"`{setting['network']}`, {setting['batch']} real images per class, geometric mean over {setting['networks']} "
        f"networks; the power is that of the line through the logarithms. Reproduce with `{found['command']}`."
    )
    return noted(("method", *(f"width {width}" for width in widths), "power"), lines, about)


def augmented_training() -> str:
    """Training with DSA against training without, on the same coresets, by method and size."""
    path = tables.RESULTS / "augmented_training" / "augmented_training.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks augmented_training` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    groups: dict[tuple[int, str], list[dict[str, dict[str, float]]]] = {}
    for run in found["runs"]:
        groups.setdefault((run["per_class"], run["method"]), []).append(run["scores"])
    lines = []
    for (size, method), runs in sorted(groups.items()):
        gain, nll = ([run["dsa"][score] - run["plain"][score] for run in runs] for score in ("accuracy", "nll"))
        plain, dsa = (_percent([run[way]["accuracy"] for run in runs]) for way in ("plain", "dsa"))
        lines.append((size, f"`{method}`", plain, dsa, _percent(gain, "+.1f"), over_seeds(nll, "+.2f")))
    setting, seeds = found["setting"], len({run["seed"] for run in found["runs"]})
    budgets = ", ".join(f"`{name}` {own['steps']}" for name, own in setting["methods"].items() if own["steps"])
    about = (
        f"Validation accuracy in percent, {seeds} seeds; {SPREAD}. Coresets of {setting['data']} with "
        f"`{setting['network']}`, made in few steps ({budgets}); both networks start from the same parameters. "
        f"Reproduce with `{found['command']}`."
    )
    head = ("per class", "method", "without", "with DSA", "difference", "difference in NLL")
    return noted(head, lines, about)


def rho() -> str:
    """LCMat-C by the weight of its variances, with the gain over gradients alone, paired by seed."""
    if not (path := tables.RESULTS / "lcmatc_rho" / "study.json").exists():
        return "No results are committed yet: `python -m benchmarks lcmatc_rho` makes them."
    found = {row.label: row for row in rows(Study.load(path))}
    alone = {run.seed: run.test.accuracy for run in found["rho=0"].runs}
    lines = []
    for row in found.values():
        gain = _percent([run.test.accuracy - alone[run.seed] for run in row.runs], "+.1f")
        lines.append((*result(row), "" if row.label == "rho=0" else gain))
    scores = ("test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s", "gain over ρ = 0")
    return noted(("per class", "method", *scores), lines, _about("lcmatc_rho"))


def _about(name: str) -> str:
    study = Study.load(tables.RESULTS / name / "study.json")
    config = study.config
    networks = f"{config['draws']} network{'s' if config['draws'] > 1 else ''}"
    return (
        f"Data: {study.data['name']}. Means over {len(rows(study)[0].runs)} seeds; {SPREAD}. {networks} trained "
        f"from scratch for {config['training']['steps']} steps each. Reproduce with `{study.command}`."
    )


TABLES: dict[str, Callable[[], str]] = {
    "condensers": condensers,
    "width-gradients": width_gradients,
    "kernel-ridge": kernel_ridge,
    "kernel-transfer": kernel_transfer,
    "unroll-memory": unrolling,
    "transfer": transfer,
    "condense-step": condense_step,
    "lcmatc-rho": rho,
    "augmented-training": augmented_training,
}
