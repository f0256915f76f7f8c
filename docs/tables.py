"""What the documentation says of committed results: a function for each table, by the name of its marker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from attar.report.rows import Row, rows
from attar.report.words import seconds
from attar.study import Study

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def results() -> str:
    """The study on digits: one line for each method and size, and what the numbers stand on."""
    study = Study.load(RESULTS / "digits" / "study.json")
    data, config, machine, found = study.data, study.config, study.machine, rows(study)
    head = ("per class", "method", "test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s")
    steps = ", ".join(f"{name} {descent['steps']}" for name, descent in sorted(config["descent"].items()))
    about = (
        f"Data: digits, {data['train']:,} training, {data['val']} validation and {data['test']} test examples. Each "
        f"figure is the mean ± one standard error over {len(found[0].runs)} seeds; for every seed the coreset is made "
        f"anew and {config['draws']} networks (`{config['network']}`) are trained on it from scratch, "
        f"{config['training']['steps']} steps each, and averaged; the full data has the same budget. Steps of the "
        f"methods that learn: {steps}. Times are processor seconds of one thread, on a shared {machine['system']} "
        f"{machine['processor']} machine with {machine['threads']} cores and no GPU; they vary with whatever else runs "
        f"there, and the wall clock more so. "
        f"torch {study.versions['torch'].partition('+')[0]}; `{study.command}` repeats it all."
    )
    return "\n".join([*table(head, map(result, found)), "", about])


def footprint() -> str:
    """The measured size and import time."""
    found = json.loads((RESULTS / "footprint" / "footprint.json").read_text(encoding="utf-8"))
    beside, torch, imports = (
        found[key] for key in ("beside_torch", "torch_and_what_it_needs", "import_seconds_after_torch")
    )
    packages = sorted(beside["packages"].items(), key=lambda item: -item[1]["bytes"])
    about = (
        f"The core takes {_mb(beside['bytes'])} MB beside torch and what torch itself needs ({_mb(torch['bytes'])} MB "
        f"in its CPU build). After torch, `import attar` takes {imports['median']:.2f} s, the median of "
        f"{len(imports['all'])} fresh processes on a shared machine with {found['machine']['threads']} cores. "
        f"`{found['command']}` measures all this again."
    )
    core = table(("package", "version", "MB"), ((name, p["version"], _mb(p["bytes"])) for name, p in packages))
    extras = table(
        ("extra", "MB beside the core"), ((f"`{k}`", _mb(v)) for k, v in found["extras_beside_the_core"].items())
    )
    return "\n".join([about, "", *core, "", *extras])


def samplers() -> str:
    """The samplers on a few random images: mean ± standard error over subsets, and what the numbers stand on."""
    found = json.loads((RESULTS / "samplers" / "samplers.json").read_text(encoding="utf-8"))
    setting, subsets = found["setting"], len(found["setting"]["seeds"])
    columns = (("accuracy", 100, 1), ("nll", 1, 3), ("ece", 1, 3), ("cpu", 1, 0))
    lines = [
        (f"`{name}`", *(f"{k * row[key]['mean']:.{d}f} ± {k * row[key]['error']:.{d}f}" for key, k, d in columns))
        for name, row in found["table"].items()
    ]
    about = (
        f"Data: {subsets} random subsets of {setting['data']}, {setting['per_class']} examples a class; for each, one "
        f"posterior of {setting['draws']} draws (`{setting['network']}`), from the prior, with the sampler's defaults, "
        f"scored once on the 10,000 test images. ± is the standard error of the mean over subsets. Seconds are "
        f"processor seconds of one thread on a shared machine. `{found['command']}` repeats it."
    )
    return "\n".join([*table(("sampler", "test accuracy, %", "NLL", "ECE", "inference, CPU s"), lines), "", about])


def pseudo_coresets() -> str:
    """The study on Fashion-MNIST: one line for each method and size, and what the numbers stand on."""
    if not (RESULTS / "pseudo_coresets" / "study.json").exists():
        return "No results are committed yet: `python -m benchmarks pseudo_coresets` makes them."
    study = Study.load(RESULTS / "pseudo_coresets" / "study.json")
    trained = json.loads((RESULTS / "pseudo_coresets" / "experts.json").read_text(encoding="utf-8"))
    config, found = study.config, rows(study)
    head = ("per class", "method", "test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s")
    about = (
        f"Data: {study.data['name']}, {study.data['train']:,} training and {study.data['test']:,} test images. Means "
        f"± one standard error over {len(found[0].runs)} seeds; {config['draws']} draws of `{config['network']}` "
        f"from the prior, {config['training']['steps']} steps each. Every method has its defaults and its own "
        f"inference. `bpc-cd`, `bpc-fkl` and `bpc-w` start from {trained['trajectories']} experts, which cost "
        f"{trained['cpu']:,.0f} processor seconds more, once. Times are those of one thread on a shared machine. "
        f"`{study.command}` repeats it."
    )
    return "\n".join([*table(head, map(result, found)), "", about])


def headline() -> str:
    """What a hundred learnt images are worth, in a sentence."""
    study = Study.load(RESULTS / "pseudo_coresets" / "study.json")
    best, random, full = (
        next(row for row in rows(study) if (row.method, row.per_class) == key)
        for key in (("vbpc", 10), ("uniform", 10), ("full", None))
    )
    return (
        f"On Fashion-MNIST, small ConvNets that learn from {best.size} images made by `vbpc`, as it means them to be "
        f"learnt from, reach {best.accuracy:.1f} % (NLL {best.test('nll'):.2f}); "
        f"from {random.size} random images {random.accuracy:.1f} % "
        f"({random.test('nll'):.2f}), and from all {full.size:,} {full.accuracy:.1f} % ({full.test('nll'):.2f}), with "
        f"the same number of steps. Making them took {mean(run.reduce_cost.cpu for run in best.runs) / 60:.0f} minutes "
        f"of one processor core ([more](docs/pseudo-coresets.md))."
    )


def training() -> str:
    """How fast the engine trains beside a plain loop, and how far that is from the machine's matrix products."""
    path = RESULTS / "training" / "training.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks training` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, by = found["setting"], found["threads"]
    lines = [
        (
            way,
            *(f"{by[n]['images_per_second'][way]:.0f}" for n in by),
            *(f"{by[n]['times_faster_than_plain'][way]['wall']:.2f}" for n in by),
            *(f"{by[n]['share_of_matmul_rate'][way]:.2f}" for n in by),
        )
        for way in by["1"]["images_per_second"]
    ]
    heads = ("images a second", "times faster than plain", "share of the rate of matrix products")
    head = ("way", *(f"{what}, {n} thread{'s' if n != '1' else ''}" for what in heads for n in by))
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in by["1"]["shares_of_time"]["engine"].items())
    rates = by["2"]["matmul_flops"]
    about = (
        f"`{setting['network']}`, 28x28, batch {setting['batch']}, float32; the fastest step of {setting['rounds']} "
        f"processes that took turns. Losses differ by {by['1']['largest_gap_of_losses']:.0e} at most. Two threads "
        f"multiply matrices at {rates['float32'] / 1e9:.0f} GFLOP/s in float32 and {rates['bfloat16'] / 1e9:.0f} in "
        f"bfloat16 here. Where a step of the engine goes: {shares}. `{found['command']}` measures it again."
    )
    return "\n".join([*table(head, lines), "", about])


def temperature() -> str:
    """Validation accuracy of bpc-cd by the temperature of its walk."""
    if not (RESULTS / "temperature" / "study.json").exists():
        return "No results are committed yet: `benchmarks/recipes/temperature.toml` says how to make them."
    study = Study.load(RESULTS / "temperature" / "study.json")
    lines = [(row.label, f"{row.validation:.1f}") for row in rows(study)]
    about = (
        f"One image a class, {len(rows(study)[0].runs)} seeds, validation images only were looked at to choose. "
        f"`{study.command}` repeats it."
    )
    return "\n".join([*table(("temperature", "validation accuracy, %"), lines), "", about])


def pseudo_coreset_step() -> str:
    """What a step costs."""
    if not (RESULTS / "pseudo_coreset_step").exists():
        return "No results are committed yet: `python -m benchmarks pseudo_coreset_step` makes them."
    found = json.loads((RESULTS / "pseudo_coreset_step" / "pseudo_coreset_step.json").read_text(encoding="utf-8"))
    setting, kept, free = found["setting"], found["graph_kept"], found["graph_free"]
    return (
        f"A step of `bpc-cd` with k = {setting['k']} on {setting['images']} images of 28x28 (`{setting['network']}`) "
        f"takes {_mb(free['memory'])} MB and {free['cpu']:.1f} processor seconds; with the graph of the walk kept, as "
        f"published code does, {_mb(kept['memory'])} MB and {kept['cpu']:.1f} s: {found['memory_ratio']:.0f} times the "
        f"memory and {found['cpu_ratio']:.1f} times the time. The process's peak at k = 200 is "
        f"{found['memory_200_over_10']:.2f} of that at k = 10. A step of `vbpc` takes {found['vbpc']['ratio']:.2f} "
        f"times the passes that it cannot do without: one forward of {setting['real_batch']} real images, and two "
        f"forward and backward passes of the examples. `{found['command']}` measures it again."
    )


def review() -> str:
    """What four changes for speed brought, each before and after in one run."""
    if not (RESULTS / "review").exists():
        return "No results are committed yet: `python -m benchmarks review` makes them."
    found = json.loads((RESULTS / "review" / "review.json").read_text(encoding="utf-8"))
    waiting, first, facility = found["waiting"], found["first_network"], found["facility_location"]
    none, setting = "–", found["setting"]
    lines = [
        ("two trainings side by side: threads sleep while they wait", f"{waiting['times_faster']:.1f}", none, none),
        ("the first network: no imports for it", f"{first['times_faster']:.0f}", none, none),
        *(
            (
                f"{name}: parts by activations",
                *(f"{run['times_faster'][way]:.2f}" for way in ("given back", "kept")),
                f"{_mb(run['bytes']['before'])} → {_mb(run['bytes']['after'])}",
            )
            for name, run in found["passes"].items()
        ),
        (
            f"facility location, {setting['points']:,} examples: a table in free memory",
            f"{facility['times_faster']:.1f}",
            none,
            f"{_mb(facility['bytes']['before'])} → {_mb(facility['bytes']['after'])}",
        ),
    ]
    head = ("work: change", "times faster", "times faster, freed memory kept", "MB")
    about = (
        "28x28 images, one thread but for the trainings; the fastest of a few rounds that took turns. Freed memory is "
        f"kept on the command line and not in Python. `{found['command']}` measures it again."
    )
    return "\n".join([*table(head, lines), "", about])


def percent(figure: dict[str, float]) -> str:
    """A mean and its standard error."""
    return f"{100 * figure['mean']:.1f} ± {100 * figure['error']:.1f}"


def table(head: tuple[str, ...], lines: Any) -> list[str]:
    """A Markdown table, or nothing where it would have no lines."""
    cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    rule = ["---"] * len(head)
    return [f"| {' | '.join(line)} |" for line in ([*head], rule, *cells)] if cells else []


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"


def result(row: Row) -> tuple[str, ...]:
    """A line of a study: size, method, scores and costs."""
    size = f"all ({row.size:,})" if row.per_class is None else str(row.per_class)
    making = "–" if row.full else seconds(mean(run.reduce_cost.cpu for run in row.runs))
    training = seconds(mean(run.infer_cost.cpu for run in row.runs))
    scores = f"{row.accuracy:.1f}", f"{row.test('nll'):.2f}", f"{row.test('ece'):.3f}"
    return size, row.label, *scores, making, training


TABLES: dict[str, Callable[[], str]] = {
    "results": results,
    "footprint": footprint,
    "samplers": samplers,
    "headline": headline,
    "pseudo-coresets": pseudo_coresets,
    "training": training,
    "temperature": temperature,
    "pseudo-coreset-step": pseudo_coreset_step,
    "review": review,
}
