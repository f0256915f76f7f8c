"""Your own arrays: any (x, y) with x of shape (n, features) or images, and y of class numbers or names."""

import numpy as np

import attar

# Stands for your data: 8×8 images as NumPy arrays, with a name for the class of each.
digits = attar.load("digits", scaling="none")
x, y = digits.train.x.numpy(), np.where(digits.train.y.numpy() % 2 == 0, "even", "odd")

split = attar.load((x, y))  # cuts test and val from every class, fits the scaling on what is left
print(f"classes {split.spec.target.names}, {len(split.train)} train, {len(split.val)} val, {len(split.test)} test")

budget = attar.Training(steps=200, batch=64)  # the coreset's users train with it too
coreset = attar.reduce(split, "herding", per_class=10, training=budget)
coreset.save("parity.safetensors")  # examples, labels, scaling, class names and recipe in one file
coreset.export("parity.npz")  # plain arrays in the units of x
coreset.export("parity.csv")  # which rows of x were kept, with label, class and weight
coreset.export("parity.png")  # a contact sheet

# Whoever has the file needs neither the data nor this script.
loaded = attar.Coreset.load("parity.safetensors")
posterior = attar.infer(loaded, draws=3)
print(attar.evaluate(posterior, split.test))

new = digits.test.x.numpy()[:3]  # in the units of the original data: the file knows the scaling
for digit, p in zip(digits.test.y[:3].tolist(), posterior.predict_proba(new), strict=True):
    print(f"{digit} is {loaded.data.spec.target.names[p.argmax()]} with probability {p.max():.2f}")
