"""Ten digits in place of 1,295: reduce, save, infer, evaluate. Run it with `python examples/quickstart.py`."""

import attar

split = attar.load("digits")  # train, val and test; these come with the package

coreset = attar.reduce(split.train, "dc", per_class=1, seed=0, descent={"steps": 20})
coreset.save("digits-dc-1.safetensors")
print(f"{len(split.train):,} examples became {len(coreset)} in {coreset.recipe.cost.wall:.0f} s")

posterior = attar.infer(coreset, "ensemble", draws=3, seed=0)  # three networks, trained on the ten digits alone
print("dc     ", attar.evaluate(posterior, split.test))

# What it is worth: ten random digits under the same network, training budget and seed.
random = attar.reduce(split.train, "uniform", per_class=1, seed=0)
print("uniform", attar.evaluate(attar.infer(random, draws=3, seed=0), split.test))
