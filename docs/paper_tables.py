"""The tables of two papers, repeated on their data and sized for two cores, beside the published figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

import tables
from tables import noted

from attar.assess.statistics import FEWEST, SPREAD, over_seeds
from attar.report.rows import Row, rows
from attar.study import Study

Published = Mapping[str, Sequence[str]]  #: by method: at one and at ten examples per class
# Tiwary, Shubham, Kashyap & Prathosh, Bayesian Pseudo-Coresets via Contrastive Divergence, UAI 2024: accuracies (%) of
# Tables 1, 10 and 12, of the two rows of BPC-fKL in Table 1 that with SGHMC; lcmat-c is Table 4 of Shin et al., below.
TIWARY: dict[str, Published] = {
    "mnist": {
        "bpc-rkl": ("74.80", "95.27"), "bpc-w": ("83.59", "91.72"), "bpc-fkl": ("82.98", "92.05"),
        "bpc-cd": ("93.42", "97.71"), "herding": ("89.2", "93.7"), "k-center": ("89.3", "84.4"),
        "forgetting": ("35.5", "68.1"), "label-distillation": ("60.60", "87.05"), "dc": ("92.01", "97.58"),
        "dsa": ("87.60", "97.39"), "dm": ("88.89", "96.58"), "cafe": ("93.10", "97.20"),
        "cafe+dsa": ("90.80", "97.50"), "kip": ("85.46", "97.15"), "mtt": ("89.85", "97.70"),
    },
    "fashion-mnist": {
        "bpc-rkl": ("70.53", "78.81"), "bpc-w": ("72.39", "83.69"), "bpc-fkl": ("72.51", "83.29"),
        "bpc-cd": ("77.29", "88.40"), "herding": ("67.0", "71.1"), "k-center": ("66.9", "54.7"),
        "forgetting": ("42.0", "53.9"), "dc": ("70.83", "81.93"), "dsa": ("70.45", "84.70"),
        "dm": ("71.92", "83.25"), "cafe": ("77.10", "83.00"), "cafe+dsa": ("73.70", "83.00"),
        "mtt": ("77.14", "88.76"),
    },
    "cifar10": {
        "bpc-rkl": ("21.62", "37.89"), "bpc-w": ("29.34", "48.90"), "bpc-fkl": ("29.30", "49.85"),
        "bpc-cd": ("46.87", "56.39"), "herding": ("21.5", "31.6"), "k-center": ("21.5", "14.7"),
        "forgetting": ("13.5", "23.3"), "label-distillation": ("25.38", "37.50"), "dc": ("28.10", "44.14"),
        "dsa": ("29.01", "51.85"), "dm": ("26.40", "48.66"), "cafe": ("30.30", "46.30"),
        "cafe+dsa": ("31.60", "50.90"), "kip": ("40.50", "53.10"), "mtt": ("46.08", "64.27"),
        "lcmat-c": ("–", "56.83"),
    },
}  # fmt: skip
#: Accuracy (%) under corruption, Table 2 of the same paper (SGHMC): bpc-rkl, bpc-w, bpc-fkl, bpc-cd.
TABLE_2 = {
    "gaussian_blur": ("31.02", "35.66", "39.73", "41.36"), "gaussian_noise": ("25.49", "33.21", "35.71", "38.01"),
    "jpeg_compression": ("30.40", "26.33", "37.26", "37.33"), "snow": ("26.85", "37.50", "35.68", "37.84"),
    "impulse_noise": ("28.39", "36.71", "38.26", "37.98"), "zoom_blur": ("31.74", "36.22", "35.05", "38.30"),
    "pixelate": ("28.98", "27.98", "39.14", "38.97"), "speckle_noise": ("29.88", "33.33", "40.54", "42.66"),
    "defocus_blur": ("27.57", "33.80", "36.72", "37.15"), "motion_blur": ("17.38", "35.22", "35.24", "37.06"),
}  # fmt: skip
#: Robust accuracy (%) under attack, Table 3.
TABLE_3 = {"bpc-rkl": "13.54", "bpc-w": "15.62", "bpc-fkl": "19.30", "bpc-cd": "22.81"}
#: Table 6, and Table 7 for the other negative phases; Table 9 has one complete row, at one image per class.
TABLE_6 = {"sigma-0.01": "50.18", "sigma-0.001": "56.39", "sigma-0.0001": "54.18", "k-50": "51.27"}
TABLE_6 |= {"hmc": "57.09", "kfac-laplace": "53.98"}
#: Shin, Bae, Shin, Joo & Moon, Loss-Curvature Matching, AISTATS 2023: Table 1 at 0.1 %, 1 % and 10 % (ResNet-18).
SHIN = {
    "uniform": ("20.42", "36.47", "77.45"), "contextual-diversity": ("16.26", "23.50", "56.85"),
    "herding": ("18.34", "31.91", "63.04"), "k-center": ("19.38", "31.61", "72.12"),
    "least-confidence": ("13.67", "20.31", "58.43"), "margin": ("17.80", "28.26", "59.90"),
    "gradmatch": ("15.31", "27.78", "51.11"), "glister": ("19.08", "29.46", "56.89"),
    "adacore": ("22.54", "39.09", "76.44"), "lcmat-s": ("23.87", "39.54", "77.41"),
}  # fmt: skip
FIGURES = f"{SPREAD}; with two seeds, both values are in brackets instead"
PSEUDO = ("bpc-rkl", "bpc-w", "bpc-fkl", "bpc-cd")


def _study(name: str) -> Study | None:
    path = tables.RESULTS / "papers" / name / "study.json"
    return Study.load(path) if path.exists() else None


def _figure(values: Sequence[float], spec: str) -> str:
    """The mean over seeds with its interval; of two seeds both values, whose t-interval is too wide to say anything."""
    if len(values) != 2:
        return over_seeds(values, spec)
    low, high = sorted(values)
    return f"{mean(values):{spec}} ({low:{spec}}, {high:{spec}})"


def _missing(name: str) -> str:
    return f"No results are committed yet: `PARTS={name} python -m benchmarks papers` makes them."


def _setting(study: Study) -> str:
    """How a study was made, for the line below its table."""
    config = study.config
    counts = sorted({len(runs) for runs in study.groups().values()})
    seeds = " or ".join(map(str, counts))
    several = f"{config['draws']} networks" if config["draws"] > 1 else "one network"
    return (
        f"`{config['network']}`, {several} trained for {config['training']['steps']} steps, {seeds} seeds; {FIGURES}. "
        f"Reproduce with `{study.command}`."
    )


def methods(name: str) -> str:
    """Tables 1, 8, 10, 11 and 12 on one data set: all methods, with calibration and cost, beside published figures."""
    study = _study(name)
    if study is None:
        return _missing(name)
    known = TIWARY[name]
    lines = [
        (
            "all" if row.per_class is None else row.per_class,
            f"`{row.method}`",
            _percent(row),
            *(_figure([getattr(run.test, metric) for run in row.runs], ".3f") for metric in ("nll", "ece", "brier")),
            f"{mean(run.reduce_cost.cpu for run in row.runs):.0f}",
            f"{max(run.reduce_cost.memory for run in row.runs) / 1e6:.0f}",
            dict(zip((1, 10), known.get(row.method, ()), strict=False)).get(row.per_class or 0, "–"),
        )
        for row in rows(study)
    ]
    head = ("per class", "method", "accuracy, %", "NLL", "ECE", "Brier", "CPU s", "MB", "paper, %")
    about = "CPU seconds and peak memory are those of one reduction, without experts. "
    return noted(head, lines, about + _setting(study))


def _percent(row: Row) -> str:
    return _figure([100 * run.test.accuracy for run in row.runs], ".1f")


def _robustness() -> dict[str, Any] | None:
    path = tables.RESULTS / "papers" / "robustness.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _by_method(found: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for run in found["runs"]:
        grouped.setdefault(run["method"], []).append(run)
    return grouped


def corruption() -> str:
    """Table 2: corrupted images."""
    if (found := _robustness()) is None:
        return _missing("robustness")
    by = _by_method(found)
    lines = []
    for name, known in TABLE_2.items():
        figures = (
            _figure(
                [100 * each["accuracy"] for run in runs for each in run["corruption"] if each["name"] == name], ".1f"
            )
            for runs in by.values()
        )
        lines.append((name.replace("_", " "), *figures, " / ".join(known)))
    head = ("corruption", *(f"`{name}`" for name in by), f"paper: {' / '.join(f'`{name}`' for name in PSEUDO)}")
    about = (
        f"Accuracy in percent on {found['images']} test images of CIFAR-10 at severity {found['severity']}; coresets "
        f"of ten images per class as above. Means over seeds; {FIGURES}. The paper does not say which severities it "
        f"averages. Reproduce with `PARTS=robustness {found['command']}`."
    )
    return noted(head, lines, about)


def attack() -> str:
    """Table 3 and Table 4: attacked images, and other networks."""
    if (found := _robustness()) is None:
        return _missing("robustness")
    by, lines = _by_method(found), []
    networks = [each["network"] for each in next(iter(by.values()))[0]["transfer"]]
    for method, runs in by.items():
        clean, robust = ([100 * run["attack"][key] for run in runs] for key in ("clean", "robust"))
        moved = (
            _figure(
                [
                    100 * each["accuracy"]
                    for run in runs
                    for each in run["transfer"]
                    if each["network"] == network and each["accuracy"] is not None
                ],
                ".1f",
            )
            for network in networks
        )
        figures = (_figure(clean, ".1f"), _figure(robust, ".1f"), TABLE_3.get(method, "–"))
        lines.append((f"`{method}`", *figures, *moved))
    head = ("method", "clean, %", "robust, %", "paper, robust, %", *(f"`{name}`, %" for name in networks))
    first = found["runs"][0]["attack"]
    about = (
        f"Clean and robust accuracy on {found['images']} test images under APGD with cross-entropy and DLR, "
        f"{first['steps']} steps, ε = {first['epsilon'] * 255:.0f}/255. The last columns are test accuracies of other "
        f"networks trained on the same coresets for {found['transfer_training']['steps']} steps. Means over seeds; "
        f"{FIGURES}. Reproduce with `PARTS=robustness {found['command']}`."
    )
    return noted(head, lines, about)


def sizes() -> str:
    """Table 5: pseudo-coresets learnt with networks of other sizes."""
    names = ("convnet-d3w8", "cifar10", "convnet-d3w32", "convnet-d4w16")
    studies = {name: study for name in names if (study := _study(name)) is not None}
    if len(studies) < 2:
        return _missing("sizes")
    found = {
        (study.config["network"], row.method): _percent(row)
        for study in studies.values()
        for row in rows(study)
        if row.per_class == 1
    }
    networks = list(dict.fromkeys(network for network, _ in found))
    lines = [
        (f"`{method}`", *(found.get((network, method), "–") for network in networks)) for method in (*PSEUDO, "vbpc")
    ]
    about = f"Test accuracy in percent on CIFAR-10, one image per class. {_setting(studies['cifar10'])}"
    return noted(("method", *(f"`{name}`" for name in networks)), lines, about)


def ablation() -> str:
    """Tables 6, 7 and 9."""
    study = _study("cifar10-ablation")
    if study is None:
        return _missing("cifar10-ablation")
    lines = [
        (
            f"`{row.method}`",
            _percent(row),
            _figure([run.test.nll for run in row.runs], ".2f"),
            f"{mean(run.reduce_cost.cpu for run in row.runs):.0f}",
            f"{max(run.reduce_cost.memory for run in row.runs) / 1e6:.0f}",
            TABLE_6.get(row.method, "–"),
        )
        for row in sorted(rows(study), key=lambda row: list(study.config["variants"]).index(row.method))
    ]
    return noted(("variant", "accuracy, %", "NLL", "CPU s", "MB", "paper, ten per class, %"), lines, _setting(study))


def selection() -> str:
    """Table 1 of the paper of LCMat."""
    study = _study("cifar10-selection")
    if study is None:
        return _missing("cifar10-selection")
    return _by_size(study, SHIN)


def rho() -> str:
    """Figure 4 of the paper of LCMat."""
    study = _study("cifar10-rho")
    return _missing("cifar10-rho") if study is None else _by_size(study, {})


def _by_size(study: Study, known: Published) -> str:
    """Methods in rows, sizes in columns, with the order against a random subset where seeds suffice."""
    sizes = sorted({run.per_class for run in study.runs if run.per_class})
    found = {(row.method, row.per_class): row for row in rows(study)}
    names = list(dict.fromkeys(row.method for row in rows(study) if row.per_class))
    ordered = bool(known) and len({run.seed for run in study.runs}) >= FEWEST
    lines = []
    for name in names:
        cells: list[str] = []
        for size in sizes:
            row = found[name, size]
            cells.append(_percent(row))
            if ordered:
                gap = row.gap
                cells.append("–" if gap is None else gap.order)
        published = [" / ".join(known.get(name, ("–",)))] if known else []
        lines.append((f"`{name}`", *cells, *published))
    train = study.data["train"]
    shares = [f"{100 * size * len(study.data['classes']) / train:.2g} %" for size in sizes]
    heads: Iterable[str] = (part for share in shares for part in (share, "against `uniform`")) if ordered else shares
    last = ["paper, %"] if known else []
    about = f"Test accuracy in percent on CIFAR-10. {_setting(study)}"
    return noted(("method", *heads, *last), lines, about)


def wins() -> str:
    """Figure 3 of the paper of LCMat: how often a method beats another, seed by seed and size by size."""
    study = _study("cifar10-selection")
    if study is None:
        return _missing("cifar10-selection")
    by = {(run.method, run.per_class, run.seed): run.test.accuracy for run in study.runs if run.per_class}
    names = list(dict.fromkeys(method for method, _, _ in by))
    cases = sorted({(size, seed) for _, size, seed in by})
    lines = [
        (
            f"`{one}`",
            *(
                "–" if one == other else f"{sum(by[one, *case] > by[other, *case] for case in cases)}"
                for other in names
            ),
        )
        for one in names
    ]
    about = (
        f"Of {len(cases)} cases (sizes and seeds of the table above), in how many the method of the row has the higher "
        "test accuracy than that of the column. The paper's cases are scoring networks that were trained differently."
    )
    return noted(("method", *(f"`{name}`" for name in names)), lines, about)


def protocols() -> str:
    """The same coresets under both protocols."""
    honest, published = _study("protocols-honest"), _study("protocols")
    if honest is None or published is None:
        return _missing("protocols")
    ours, known = {row.method: row for row in rows(honest)}, TIWARY["fashion-mnist"]
    lines = [
        (
            f"`{row.method}`",
            _percent(ours[row.method]),
            _percent(row),
            known[row.method][0],
            f"{mean(run.reduce_cost.cpu for run in row.runs) / 60:.0f}",
        )
        for row in rows(published)
    ]
    near = [
        f"`{row.method}`"
        for row in rows(published)
        if abs(100 * mean(run.test.accuracy for run in row.runs) - float(known[row.method][0])) <= 3
    ]
    about = (
        f"Under `published`, {', '.join(near)} are within three points of the paper's figures. "
        f"Test accuracy on Fashion-MNIST, one image per class: `{published.config['network']}`, one coreset of each "
        f"method, {published.config['evaluations']} networks trained on it; {SPREAD} over networks. `honest` trains "
        f"them for {honest.config['training']['steps']} steps. CPU minutes are those of learning a coreset, without "
        "experts. Reproduce with `PARTS=protocols python -m benchmarks papers`."
    )
    return noted(("method", "`honest`, %", "`published`, %", "paper, %", "CPU minutes"), lines, about)


TABLES: dict[str, Callable[[], str]] = {
    **{f"paper-{name}": partial(methods, name) for name in TIWARY},
    "paper-corruption": corruption,
    "paper-attack": attack,
    "paper-sizes": sizes,
    "paper-ablation": ablation,
    "paper-selection": selection,
    "paper-wins": wins,
    "paper-rho": rho,
    "paper-protocols": protocols,
}
