"""Write what the documentation takes from code and results, so that it cannot drift.

``python docs/make.py`` writes docs/methods.md, docs/cli.md and the marked parts of other pages; ``--check`` writes
nothing and fails where something is out of date; ``--picture`` also makes docs/report.png, which needs chromium.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

for _name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TERMINAL_WIDTH"):
    os.environ.pop(_name, None)
os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}  # before typer comes, which reads them once

from typer.testing import CliRunner  # noqa: E402

from attar import registry  # noqa: E402
from attar.cli import build  # noqa: E402
from attar.cli.options import describe  # noqa: E402
from attar.condense.contract import Descent  # noqa: E402
from attar.evaluate import Study  # noqa: E402
from attar.files import write_text  # noqa: E402
from attar.nets.names import NETWORKS  # noqa: E402
from attar.nets.train import Training  # noqa: E402
from attar.report.rows import Row, rows  # noqa: E402
from attar.report.words import seconds  # noqa: E402

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NOTE = "<!-- Written by `make docs` from the code; change the code instead. -->\n"
FAMILIES = {
    "select": ("Selectors", "keep real examples"),
    "condense": ("Condensers", "learn synthetic examples"),
    "bayes": ("Pseudo-coresets", "learn synthetic examples for a posterior"),
    "infer": ("Samplers", "turn a coreset into a posterior over network parameters"),
}
LARGEST = 150_000  #: bytes of the picture


def pages() -> dict[Path, str]:
    """Every page that is made here, with its text."""
    made = {ROOT / "docs" / "methods.md": methods(), ROOT / "docs" / "cli.md": commands()}
    names = ("dependencies", "honest-numbers", "pseudo-coresets", "selection")
    for path in (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in names)):
        made[path] = fill(path.read_text(encoding="utf-8"))
    return made


def fill(text: str) -> str:
    """Put every part between its two markers, where the page has them."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{part()}\n{end}{rest.partition(end)[2]}"
    return text


def methods() -> str:
    """The registry as a page: a table of all, then the equation and the options of each."""
    lines = [NOTE, "# Methods\n", "`attar methods` prints this table, `attar methods NAME` one entry.\n"]
    lines += table(("name", "family", "learns", "cost", "paper"), map(_entry, _sorted()))
    for family, entries in _families().items():
        title, about = FAMILIES[family]
        lines += [f"\n## {title}", f"\nThey {about}."]
        for entry in entries:
            lines += [f"\n### {entry.name}\n", markdown(entry.build.__doc__ or ""), f"\n*{entry.paper}.*\n"]
            options = list(_options(entry.build))
            lines += table(("option", "type and range", "default", "what it is"), options) or ["It has no options."]
    lines += ["\n## Training on a coreset\n", "The budget that all rows of a comparison share (`attar.Training`).\n"]
    lines += table(("option", "type and range", "default", "what it is"), _fields(Training, prefix="train-"))
    lines += ["\n## Networks\n"]
    lines += table(("name", "what it is"), ((f"`{name}`", about) for name, about in NETWORKS.items()))
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command."""
    app = build()
    names = [command.name or "" for command in app.registered_commands]
    lines = [
        NOTE,
        "# Command line\n",
        "`attar reduce --method NAME --help` shows the options of a method too, `attar infer --sampler NAME --help`",
        "those of a sampler; [methods](methods.md) lists them all.",
    ]
    for words in ([], *([name] for name in names)):
        answer = CliRunner().invoke(app, [*words, "--help"], prog_name="attar", color=False)
        text = "\n".join(line.rstrip() for line in answer.output.splitlines()).strip("\n")
        lines += [f"\n## {' '.join(['attar', *words])}\n", "```text", text, "```"]
    return "\n".join(lines) + "\n"


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
    return "\n".join([*table(head, map(_result, found)), "", about])


def status() -> str:
    """What there is, counted."""
    return "\n".join(
        f"- {FAMILIES[family][0]}, which {FAMILIES[family][1]}: " + ", ".join(f"`{entry.name}`" for entry in entries)
        for family, entries in _families().items()
    )


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
    if not (RESULTS / "pseudo_coresets").exists():
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
    return "\n".join([*table(head, map(_result, found)), "", about])


def temperature() -> str:
    """Validation accuracy of bpc-cd by the temperature of its walk."""
    if not (RESULTS / "temperature").exists():
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


def selection() -> str:
    """The study of selection: accuracy by method and fraction with its cost, as far as it was measured."""
    path = RESULTS / "selection" / "study.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks selection_study` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, fractions = found["setting"], list(found["table"])
    best = found["table"][fractions[-1]]
    order = sorted(best, key=lambda name: -best[name]["accuracy"]["mean"])
    heads = [f"{100 * float(fraction):g} %" for fraction in fractions]
    lines = [
        (
            f"`{name}`",
            *(_percent(found["table"][fraction][name]["accuracy"]) for fraction in fractions),
            seconds(best[name]["selection_cpu"]),
        )
        for name in order
    ]
    lines.append(("full data", *[""] * (len(fractions) - 1), _percent(found["full"]["accuracy"]), "–"))
    about = (
        f"Test accuracy in percent on {setting['data']}, mean ± standard error over {len(setting['seeds'])} seeds, "
        f"best at {heads[-1]} first. Picks are from {setting['train']:,} training examples, as many of each class; all "
        f"methods of a seed look through one network (`{setting['network']}`, {setting['scoring']['steps']:,} steps, "
        f"{seconds(found['scoring_cpu'])} CPU s), and new ones are trained on the picks, "
        f"{setting['training']['steps']} steps each. Seconds are processor seconds of selection at {heads[-1]} beside "
        f"that network, on a shared machine. `{found['command']}` repeats it."
    )
    return "\n".join([*table(("method", *heads, f"selection at {heads[-1]}, CPU s"), lines), "", about])


def _percent(figure: dict[str, float]) -> str:
    return f"{100 * figure['mean']:.1f} ± {100 * figure['error']:.1f}"


PARTS: dict[str, Callable[[], str]] = {
    "pseudo-coresets": pseudo_coresets,
    "temperature": temperature,
    "pseudo-coreset-step": pseudo_coreset_step,
    "results": results,
    "status": status,
    "footprint": footprint,
    "samplers": samplers,
    "selection": selection,
}


def table(head: tuple[str, ...], lines: Any) -> list[str]:
    """A Markdown table, or nothing where it would have no lines."""
    cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    rule = ["---"] * len(head)
    return [f"| {' | '.join(line)} |" for line in ([*head], rule, *cells)] if cells else []


def markdown(docstring: str) -> str:
    """A docstring whose mathematics GitHub shows."""
    text = inspect.cleandoc(docstring)
    text = re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":math:`([^`]+)`", r"$`\1`$", text))
    return re.sub(r"\.\. math:: (.+?)(?=\n\n|\Z)", _equation, text, flags=re.DOTALL)


def _equation(found: re.Match[str]) -> str:
    lines = inspect.cleandoc(found[1])
    aligned = f"\\begin{{aligned}}\n{lines}\n\\end{{aligned}}" if "&" in lines else lines
    return f"```math\n{aligned}\n```"


def picture() -> Path:
    """The summary of the committed report and the examples of its smallest size, as a browser shows them."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    path = ROOT / "docs" / "report.png"
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme="light")
        page.goto((RESULTS / "digits" / "report.html").as_uri())
        page.add_style_tag(content="nav, #scores { display: none }")
        end = page.evaluate("document.querySelector('.shelf').getBoundingClientRect().bottom + 24")
        shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": 1000, "height": end})
        browser.close()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(256).save(path, "PNG", optimize=True)
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes: take a smaller window.")
    return path


def main(words: list[str]) -> None:
    """Write or check every page."""
    if unknown := set(words) - {"--check", "--picture"}:
        sys.exit(f"docs/make.py takes --check and --picture, not {' '.join(sorted(unknown))}.")
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in words:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"Out of date: {names}. Run make docs." if stale else 0)
    for path in stale:
        write_text(path, pages()[path])
    if "--picture" in words:
        stale.append(picture())
    sys.stdout.writelines(f"wrote {path.relative_to(ROOT)}\n" for path in stale)


def _sorted() -> list[registry.Entry]:
    order = list(FAMILIES)
    return sorted(registry.methods().values(), key=lambda entry: (order.index(entry.family), entry.name))


def _families() -> dict[str, list[registry.Entry]]:
    grouped: dict[str, list[registry.Entry]] = {}
    for entry in _sorted():
        grouped.setdefault(entry.family, []).append(entry)
    return grouped


def _entry(entry: registry.Entry) -> tuple[str, ...]:
    return f"[`{entry.name}`](#{entry.name})", entry.family, entry.learns, entry.cost, entry.paper


def _options(method: type) -> Iterator[tuple[str, ...]]:
    yield from _fields(method)
    usual = getattr(method, "descent", None)
    if isinstance(usual, Descent):
        yield from _fields(Descent, usual)


def _fields(cls: type, usual: object = None, prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, info in registry.fields(cls).items():
        default = info.default if usual is None else getattr(usual, name)
        flag = f"`--{prefix}{name.replace('_', '-')}`"
        yield flag, describe(info), "" if default is None else f"`{default}`", info.description or ""


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"


def _result(row: Row) -> tuple[str, ...]:
    size = f"all ({row.size:,})" if row.per_class is None else str(row.per_class)
    making = "–" if row.full else seconds(mean(run.reduce_cost.cpu for run in row.runs))
    training = seconds(mean(run.infer_cost.cpu for run in row.runs))
    scores = f"{row.accuracy:.1f}", f"{row.test('nll'):.2f}", f"{row.test('ece'):.3f}"
    return size, row.label, *scores, making, training


if __name__ == "__main__":
    main(sys.argv[1:])
