"""The 1,797 handwritten digits of 8×8 pixels that come with the package, so that everything runs without a download.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998,
https://doi.org/10.24432/C50P49, licence CC BY 4.0: the test set, in the order in which scikit-learn ships it. Pixels
count the set bits of a 4×4 block, 0..16, and are stored as such; dividing by 16 is exact in float32.
"""

from __future__ import annotations

from importlib import resources

import numpy as np

from attar.data.raw import RawSplit, pack

DIGITS = tuple("0123456789")


def read() -> RawSplit:
    """All digits as one set, without a test set."""
    with resources.files("attar.data").joinpath("digits.npz").open("rb") as file, np.load(file) as arrays:
        return pack(arrays["x"].astype(np.float32) / 16, arrays["y"], "digits", DIGITS)
