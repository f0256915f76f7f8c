"""Images: ten digits in place of 1,295, selected or learnt, and what each choice is worth."""

# %% [markdown]
# `attar.load` takes a name, a folder with one sub-folder of PNG or JPEG images per class, an array, or a data set of
# Hugging Face or torch. It returns train, validation and test sets; the scaling is fitted on the first.

# %%
import attar

split = attar.load("digits")
print(f"{len(split.train):,} training images of shape {split.shape} in {split.classes} classes")

# %% [markdown]
# One image per class: at random, by herding (real images near the mean of their class, as a network sees them), and
# learnt by `dm`, which matches the mean features of a class under random networks. More steps of `dm` give better
# images; 20 take seconds.

# %%
budget = attar.Training(steps=100, batch=64)
coresets = {
    "uniform": attar.reduce(split, "uniform", per_class=1, training=budget),
    "herding": attar.reduce(split, "herding", per_class=1, training=budget),
    "dm": attar.reduce(split, "dm", per_class=1, training=budget, descent={"steps": 20}),
}

# %% [markdown]
# Three networks are trained on the ten images alone, from scratch, and their predictions are averaged. The test set is
# scored once.

# %%
for name, coreset in coresets.items():
    scores = attar.evaluate(attar.infer(coreset, draws=3), split)
    print(f"{name:>8}: accuracy {scores.accuracy:.2f}, NLL {scores.nll:.2f}")

# %% [markdown]
# A coreset is one file. It holds what is needed to train on it and to predict new images in the original units. A
# contact sheet shows the images, a report compares them with the baselines (`attar.report`).

# %%
coresets["dm"].save("digits-dm.safetensors")
coresets["dm"].export("digits-dm.png")
print(attar.Coreset.load("digits-dm.safetensors").pixels().shape)
