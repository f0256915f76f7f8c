"""Tables of committed results for the documentation: one function per marker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from attar.assess.statistics import SPREAD, half_width, over_seeds, with_half
from attar.report.rows import Row, rows
from attar.report.words import seconds
from attar.study import Study
from attar.study.spec import CONVERGED

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def results() -> str:
    """The study on digits: one row per method and size, and how it was made."""
    study = Study.load(RESULTS / "digits" / "study.json")
    data, config, machine, found = study.data, study.config, study.machine, rows(study)
    head = ("per class", "method", "test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s")
    steps = ", ".join(f"{name} {descent['steps']}" for name, descent in sorted(config["descent"].items()))
    about = (
        f"Data: digits, {data['train']:,} training, {data['val']} validation and {data['test']} test examples. Scores "
        f"are means over {len(found[0].runs)} seeds; {SPREAD}. For each seed, a new coreset is made, and "
        f"{config['draws']} networks (`{config['network']}`) are trained on it from scratch for "
        f"{config['training']['steps']} steps each; their predictions are averaged. The full data is there with the "
        f"same training settings and trained to convergence. Steps of the methods that learn: {steps}. Times are "
        f"processor seconds of one thread on a "
        f"shared {machine['system']} {machine['processor']} machine with {machine['threads']} cores and no GPU; they "
        f"vary with the load of the machine. "
        f"torch {study.versions['torch'].partition('+')[0]}. Reproduce with `{study.command}`."
    )
    return noted(head, map(result, found), about)


def short_results() -> str:
    """The study on digits in two lines: accuracies by size and method."""
    study = Study.load(RESULTS / "digits" / "study.json")
    names = {"uniform": "random", "herding": "herding (selected)", "dm": "dm (learnt)", "dc": "dc (learnt)"}
    found = {
        (row.method, row.per_class): over_seeds([100 * run.test.accuracy for run in row.runs], ".1f")
        for row in rows(study)
    }
    sizes = sorted({size for _, size in found if size is not None})
    lines = table(
        ("test accuracy, %", *names.values(), f"all {study.data['train']:,} images, trained to convergence"),
        (
            (
                f"{len(study.data['classes']) * size} images",
                *(found[name, size] for name in names),
                found[CONVERGED, None],
            )
            for size in sizes
        ),
    )
    about = f"Digits, means over {len(rows(study)[0].runs)} seeds; {SPREAD}. [All results](docs/results.md)."
    return "\n".join([*lines, "", about])


def before_after() -> str:
    """Every method at an earlier commit and now, on validation images."""
    path = RESULTS / "before_after" / "before_after.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks before_after` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, seeds, lines = found["setting"], len(found["seeds"]), []
    for row in found["rows"]:
        accuracies = [[100 * run["accuracy"] for run in row[side]] for side in ("before", "after")]
        change = f"{row['difference']:+.1f} ± {row['half']:.1f}"
        lines.append((row["per_class"], row["method"], *(f"{mean(a):.1f}" for a in accuracies), change, row["order"]))
    head = ("per class", "method", "before, %", "now, %", "change, points", "by its interval")
    about = (
        f"Validation accuracy on Fashion-MNIST ({setting['train']:,} training images, `{setting['network']}`), means "
        f"over {seeds} seeds at commit `{found['commits']['before'][:7]}` and now, with the same steps; ± is half the "
        f"width of the 95 % interval of a difference of two means (Welch). Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def footprint() -> str:
    """Measured size and import time."""
    found = json.loads((RESULTS / "footprint" / "footprint.json").read_text(encoding="utf-8"))
    beside, torch, imports = (
        found[key] for key in ("beside_torch", "torch_and_what_it_needs", "import_seconds_after_torch")
    )
    packages = sorted(beside["packages"].items(), key=lambda item: -item[1]["bytes"])
    about = (
        f"The core takes {_mb(beside['bytes'])} MB in addition to torch and its own requirements "
        f"({_mb(torch['bytes'])} MB in the CPU build). After torch, loading attar takes {imports['median']:.2f} "
        f"processor seconds (median of {len(imports['all'])} new processes). Reproduce with `{found['command']}`."
    )
    core = table(("package", "version", "MB"), ((name, p["version"], _mb(p["bytes"])) for name, p in packages))
    extras = table(
        ("extra", "MB in addition to the core"),
        ((f"`{k}`", _mb(v)) for k, v in found["extras_beside_the_core"].items()),
    )
    return "\n".join([about, "", *core, "", *extras])


def samplers() -> str:
    """The samplers on a few random images: means over subsets with t-intervals, and how it was made."""
    found = json.loads((RESULTS / "samplers" / "samplers.json").read_text(encoding="utf-8"))
    setting, subsets = found["setting"], len(found["setting"]["seeds"])
    columns = (("accuracy", 100, 1), ("nll", 1, 3), ("ece", 1, 3), ("cpu", 1, 0))
    lines = [
        (f"`{name}`", *(interval(row[key], subsets, k, f".{d}f") for key, k, d in columns), *chains(row))
        for name, row in found["table"].items()
    ]
    about = (
        f"Data: {subsets} random subsets of {setting['data']} with {setting['per_class']} examples per class. For "
        f"each, one posterior of {setting['draws']} draws (`{setting['network']}`) is inferred from the prior with the "
        f"sampler's defaults and scored on the 10,000 test images. Means over subsets; {SPREAD}. "
        f"Times are processor seconds of one thread on a shared machine. T is the temperature of chains, R-hat their "
        f"largest over subsets, a dash where there are none on record. Reproduce with `{found['command']}`."
    )
    head = ("sampler", "test accuracy, %", "NLL", "ECE", "inference, CPU s", "T", "R-hat")
    return noted(head, lines, about)


def chains(row: dict[str, Any]) -> list[str]:
    """Temperature and R-hat of a row; dashes for samplers without chains, and for older files."""
    known = row.get("chains", {})
    shown = (("temperature", "g"), ("rhat", ".2f"))
    return ["–" if known.get(name) is None else format(known[name], spec) for name, spec in shown]


def pseudo_coresets() -> str:
    """The study on Fashion-MNIST: one row per method and size, and how it was made."""
    if not (RESULTS / "pseudo_coresets" / "study.json").exists():
        return "No results are committed yet: `python -m benchmarks pseudo_coresets` makes them."
    study = Study.load(RESULTS / "pseudo_coresets" / "study.json")
    trained = json.loads((RESULTS / "pseudo_coresets" / "experts.json").read_text(encoding="utf-8"))
    config, found = study.config, rows(study)
    head = ("per class", "method", "test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s")
    about = (
        f"Data: {study.data['name']}, {study.data['train']:,} training and {study.data['test']:,} test images. Means "
        f"over {len(found[0].runs)} seeds; {SPREAD}. {config['draws']} draws of `{config['network']}`, "
        f"inferred from the prior with {config['training']['steps']} steps each. Every method has its default options "
        f"and its recommended inference. `bpc-cd`, `bpc-fkl` and `bpc-w` use {trained['trajectories']} experts, which "
        f"cost {trained['cpu']:,.0f} processor seconds more, once. Times are processor seconds of one thread on a "
        f"shared machine. Reproduce with `{study.command}`."
    )
    return noted(head, map(result, found), about)


def headline() -> str:
    """The main result in a few sentences."""
    study = Study.load(RESULTS / "pseudo_coresets" / "study.json")
    best, random, full = (
        next(row for row in rows(study) if (row.method, row.per_class) == key)
        for key in (("vbpc", 10), ("uniform", 10), ("full", None))
    )
    longer = json.loads((RESULTS / "full_data" / "fashion-mnist.json").read_text(encoding="utf-8"))
    end = "where validation accuracy still rises" if longer["rising"] else "to convergence"
    return (
        f"On Fashion-MNIST, small ConvNets trained on {best.size} images that `vbpc` learnt, with its recommended "
        f"training, reach a test accuracy of {best.accuracy:.1f} % (NLL {best.test('nll'):.2f}). "
        f"With the same number of training steps, {random.size} random images give {random.accuracy:.1f} % "
        f"({random.test('nll'):.2f}), and all {full.size:,} images {full.accuracy:.1f} % ({full.test('nll'):.2f}); "
        f"trained for {longer['steps']:,} steps, {end}, these give {100 * longer['accuracy']:.1f} % "
        f"({longer['nll']:.2f}). "
        f"Learning the {best.size} images took {mean(run.reduce_cost.cpu for run in best.runs) / 60:.0f} minutes "
        f"on one processor core ([more](docs/pseudo-coresets.md))."
    )


def training() -> str:
    """The speed of the training engine against a plain loop and the machine's matrix products."""
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
    heads = ("images per second", "times faster than plain", "share of the matrix product rate")
    head = ("variant", *(f"{what}, {n} thread{'s' if n != '1' else ''}" for what in heads for n in by))
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in by["1"]["shares_of_time"]["engine"].items())
    rates = by["2"]["matmul_flops"]
    about = (
        f"`{setting['network']}`, 28x28, batch {setting['batch']}, float32; the fastest step of {setting['rounds']} "
        f"alternating processes. Losses differ by {by['1']['largest_gap_of_losses']:.0e} at most. With two threads, "
        f"matrix products reach {rates['float32'] / 1e9:.0f} GFLOP/s in float32 and {rates['bfloat16'] / 1e9:.0f} in "
        f"bfloat16 here. Time of an engine step by operation: {shares}. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def acceleration() -> str:
    """What half precision and compiled code are worth on the machine of the committed results."""
    path = RESULTS / "acceleration" / "acceleration.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks acceleration` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = []
    for network, modes in found["found"].items():
        for mode, said in modes.items():
            numbers = ["–", "–", "–", said]
            if isinstance(said, dict):
                numbers = [f"{said['faster']:.2f}", f"{said['gradient']:.1e}", f"{said['setup']:.0f}", ""]
            lines.append((f"`{network}`", f"`{mode}`", *numbers))
    head = ("network", "mode", "times as fast as float32", "gradient differs by", "seconds of set-up", "why not")
    about = (
        f"{found['setting']['batch']} images of Fashion-MNIST, one thread, a processor without instructions for "
        f"bfloat16. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def temperature() -> str:
    """Validation accuracy of bpc-cd by the temperature of its negative phase."""
    if not (RESULTS / "temperature" / "study.json").exists():
        return "No results are committed yet: `benchmarks/recipes/temperature.toml` says how to make them."
    study = Study.load(RESULTS / "temperature" / "study.json")
    lines = [(row.label, f"{row.validation:.1f}") for row in rows(study)]
    about = (
        f"One image per class, {len(rows(study)[0].runs)} seeds; the choice was made on validation images only. "
        f"Reproduce with `{study.command}`."
    )
    return noted(("temperature", "validation accuracy, %"), lines, about)


def pseudo_coreset_step() -> str:
    """The cost of a step."""
    if not (RESULTS / "pseudo_coreset_step").exists():
        return "No results are committed yet: `python -m benchmarks pseudo_coreset_step` makes them."
    found = json.loads((RESULTS / "pseudo_coreset_step" / "pseudo_coreset_step.json").read_text(encoding="utf-8"))
    setting, kept, free = found["setting"], found["graph_kept"], found["graph_free"]
    return (
        f"A step of `bpc-cd` with k = {setting['k']} on {setting['images']} images of 28x28 (`{setting['network']}`) "
        f"takes {_mb(free['memory'])} MB and {free['cpu']:.1f} processor seconds. If the graph of the k steps is kept, "
        f"as in published code, it takes {_mb(kept['memory'])} MB and {kept['cpu']:.1f} s: {found['memory_ratio']:.0f} "
        f"times the memory and {found['cpu_ratio']:.1f} times the time. The peak memory of the process at k = 200 is "
        f"{found['memory_200_over_10']:.2f} times that at k = 10. A step of `vbpc` takes {found['vbpc']['ratio']:.2f} "
        f"times as long as the passes that it needs: one forward pass of {setting['real_batch']} real images, and two "
        f"forward and backward passes of the examples. Reproduce with `{found['command']}`."
    )


def review() -> str:
    """Four changes for speed, each before and after in one run."""
    if not (RESULTS / "review").exists():
        return "No results are committed yet: `python -m benchmarks review` makes them."
    found = json.loads((RESULTS / "review" / "review.json").read_text(encoding="utf-8"))
    waiting, first, facility = found["waiting"], found["first_network"], found["facility_location"]
    none, setting = "–", found["setting"]
    lines = [
        ("two trainings at the same time: waiting threads sleep", f"{waiting['times_faster']:.1f}", none, none),
        ("the first network: no further imports", f"{first['times_faster']:.0f}", none, none),
        *(
            (
                f"{name}: batches limited by activations",
                *(f"{run['times_faster'][way]:.2f}" for way in ("given back", "kept")),
                f"{_mb(run['bytes']['before'])} → {_mb(run['bytes']['after'])}",
            )
            for name, run in found["passes"].items()
        ),
        (
            f"facility location, {setting['points']:,} examples: distances kept in free memory",
            f"{facility['times_faster']:.1f}",
            none,
            f"{_mb(facility['bytes']['before'])} → {_mb(facility['bytes']['after'])}",
        ),
    ]
    head = ("work: change", "times faster", "times faster, freed memory kept", "MB")
    about = (
        "28x28 images, one thread except for the trainings; the fastest of a few alternating rounds. Freed memory is "
        f"kept on the command line but not in Python. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def trust() -> str:
    """What the runs of the harness found, one line each; a run that has no result yet has no line."""
    found = {name: _trust(name) for name in ("fuzz", "faults", "kills", "soak")}
    lines = []
    if fuzz := found["fuzz"]:
        kinds = f"{fuzz['crashes']} crashes, {fuzz['hangs']} hangs, {fuzz['executed']} executed"
        bad = f"{fuzz['bad']} handled badly ({kinds})"
        grew = f"at most {_mb(fuzz['peak'])} MB more memory where files may take {_mb(fuzz['budget'])} MB"
        how = f"{fuzz['inputs']:,} mutated files of {len(fuzz['targets'])} kinds, seed {fuzz['seed']}"
        lines.append((how, f"{fuzz['read']:,} read, {fuzz['refused']:,} refused; {bad}; {grew}"))
    if faults := found["faults"]:
        scenes = faults["scenes"].values()
        counts = {key: sum(scene[key] for scene in scenes) for key in ("operations", "faults", "bad")}
        where = f"{counts['operations']:,} operations on files ({', '.join(faults['scenes'])})"
        how = f"{counts['faults']:,} faults at {where}"
        lines.append((how, f"{counts['bad']} lost something, could not be resumed or ended in other results"))
    if kills := found["kills"]:
        signals = ", ".join(f"{count:,} {name}" for name, count in kills["signals"].items())
        how = f"{kills['kills']:,} signals at random moments ({signals}), seed {kills['seed']}"
        lost = sum("traceback" not in problem for problem in kills["problems"])
        told = f"; {kills['bad'] - lost} showed a traceback" if kills["bad"] > lost else ""
        lines.append((how, f"{lost} lost something, could not be resumed or ended in other results{told}"))
    if soak := found["soak"]:
        first, last = (_mb(size) for size in soak["memory"])
        held = f"{soak['files'][1]} open files, threads: {soak['threads'][1]}"
        lines.append((f"{soak['rounds']:,} rounds of work in one process", f"memory {first} → {last} MB, {held}"))
    return "\n".join(table(("what was done", "what became of it"), lines))


def _trust(name: str) -> Any:
    path = RESULTS / "trust" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def percent(figure: dict[str, float], seeds: int) -> str:
    """A mean over seeds in percent, stored with its standard error, and half the width of its t-interval."""
    return interval(figure, seeds, 100, ".1f")


def interval(figure: dict[str, float], seeds: int, scale: float, spec: str) -> str:
    """The same of any score."""
    return with_half(scale * figure["mean"], half_width(scale * figure["error"], seeds), spec)


def table(head: tuple[str, ...], lines: Any) -> list[str]:
    """A Markdown table; empty if it has no lines."""
    cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    rule = ["---"] * len(head)
    return [f"| {' | '.join(line)} |" for line in ([*head], rule, *cells)] if cells else []


def noted(head: tuple[str, ...], lines: Any, about: str) -> str:
    """A table, and how it was made below it."""
    return "\n".join([*table(head, lines), "", about])


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
    "before-after": before_after,
    "results": results,
    "short-results": short_results,
    "footprint": footprint,
    "samplers": samplers,
    "headline": headline,
    "pseudo-coresets": pseudo_coresets,
    "training": training,
    "acceleration": acceleration,
    "temperature": temperature,
    "pseudo-coreset-step": pseudo_coreset_step,
    "review": review,
    "trust": trust,
}
