"""A coreset as a data set of the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from attar.core.errors import AttarError, require
from attar.coreset import Coreset
from attar.export.hub import card, no_bars, table
from attar.export.numbers import write_csv
from attar.export.pictures import LIST
from attar.recipe import Recipe

TABLE = "data/train-00000-of-00001.parquet"
FILE = "coreset.safetensors"

_LOAD = """import datasets
data = datasets.load_dataset("{repo}", split="train")

import attar, huggingface_hub
split = attar.load("hf:{repo}", target="label")  # the examples and their most likely classes
coreset = attar.Coreset.load(huggingface_hub.hf_hub_download("{repo}", "{file}", repo_type="dataset"))  # everything"""


class Pushed(NamedTuple):
    """What was written to the hub, or would be.

    Args:
        url: The page of the data set.
        files: The size of every file in bytes.
        exists: Whether the data set was there before.
        card: The text of the card.
    """

    url: str
    files: dict[str, int]
    exists: bool
    card: str


def push_to_hub(
    coreset: Coreset,
    repo: str,
    *,
    private: bool = True,
    dry_run: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> Pushed:
    """Publish a coreset as a data set of the Hugging Face hub, with a card (extra ``hf``).

    Written are the examples as Parquet, which ``datasets.load_dataset`` reads, the coreset file, the list of examples
    and the card. Paths on your machine are left out; what was learnt or selected from private data is not.

    Args:
        coreset: What to publish.
        repo: ``owner/name``.
        private: Whether a new data set is private; one that exists stays as it is.
        dry_run: Only ask the hub who you are and whether the data set exists, and write nothing there.
        token: An access token; by default the one of ``hf auth login`` or ``HF_TOKEN``.
        endpoint: Address of the hub, if it is another one.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise AttarError(f"{repo!r} is no name of a data set on the hub: give owner/name.")
    hub = require("huggingface_hub", "hf")
    api = hub.HfApi(endpoint=endpoint, token=token, library_name="attar")
    with TemporaryDirectory(suffix=".attar-tmp") as name:
        folder = Path(name)
        text = _write(coreset, folder, repo)
        files = {
            path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()
        }
        with _told(hub, repo):
            api.whoami()
            exists = api.repo_exists(repo, repo_type="dataset")
            if not dry_run:
                api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
                api.upload_folder(
                    repo_id=repo,
                    repo_type="dataset",
                    folder_path=folder,
                    commit_message=f"Coreset of {len(coreset)} examples",
                )
    return Pushed(f"{api.endpoint}/datasets/{repo}", dict(sorted(files.items())), exists, text)


def _write(coreset: Coreset, folder: Path, repo: str) -> str:
    """The files of the data set; returns the text of the card."""
    public = replace(coreset.to("cpu"), recipe=_without_paths(coreset.recipe))
    (folder / TABLE).parent.mkdir()
    with no_bars(require("datasets", "hf")):
        table(public).to_parquet(str(folder / TABLE))
    public.save(folder / FILE)
    write_csv(public, folder / LIST)
    files = {"config_name": "default", "data_files": [{"split": "train", "path": TABLE}]}
    text = card(public, _LOAD.format(repo=repo, file=FILE), {"configs": [files]})
    (folder / "README.md").write_text(text, encoding="utf-8")
    return text


def _without_paths(recipe: Recipe) -> Recipe:
    """The recipe without an origin that names files of this machine; known names stay."""
    origin = recipe.origin
    named = [] if origin is None else [origin.source, origin.test_source, origin.vectors]
    return replace(recipe, origin=None) if any(Path(name).is_absolute() for name in named if name) else recipe


@contextmanager
def _told(hub: Any, repo: str) -> Iterator[None]:
    """Errors of the hub in one sentence."""
    try:
        yield
    except hub.errors.LocalTokenNotFoundError as error:
        raise AttarError("The hub needs an access token: run `hf auth login`, or set HF_TOKEN.") from error
    except (
        *hub.errors.HfHubHTTPError.__bases__,
        OSError,
    ) as error:  # those of its HTTP client
        reason = " ".join(str(error).split())[:200]
        raise AttarError(
            f"The hub did not take {repo} ({reason}): check the name, the token's rights and the network."
        ) from error
