"""scikit-learn: a coreset for any estimator, and an estimator that reduces its own training data."""

# %% [markdown]
# `coreset.numpy()` gives flat, scaled arrays. Test data must be scaled as the coreset's was.

# %%
from sklearn.linear_model import LogisticRegression

import attar

split = attar.load("digits")
budget = attar.Training(steps=100, batch=64)  # of the network through which herding looks
coreset = attar.reduce(split, "herding", per_class=10, training=budget)
estimator = LogisticRegression(max_iter=1000).fit(*coreset.numpy())
test = split.test.transformed(coreset.data.spec.transform)
x, y = test.x.flatten(1).numpy(), test.y.numpy()
print(f"LogisticRegression on {len(coreset)} examples: {estimator.score(x, y):.1%}")

# %% [markdown]
# Some methods weigh their examples. Pass the weights as `sample_weight`; `numpy()` reminds you of it by a warning.

# %%
weighted = attar.reduce(split, "craig", per_class=10, training=budget)
flat, labels = weighted.data.x.flatten(1).numpy(), weighted.data.y.numpy()
estimator = LogisticRegression(max_iter=1000).fit(flat, labels, sample_weight=weighted.data.weights.numpy())
print(f"the same with the weights of craig: {estimator.score(x, y):.1%}")

# %% [markdown]
# `CoresetClassifier` does reduction and training in one estimator, which fits pipelines and grid searches. It scales
# features itself.

# %%
raw = attar.load("digits", scaling="none")
classifier = attar.CoresetClassifier("uniform", per_class=10, image_shape=(1, 8, 8))
classifier.fit(raw.train.x.flatten(1).numpy(), raw.train.y.numpy())
share = classifier.score(raw.test.x.flatten(1).numpy(), raw.test.y.numpy())
print(f"CoresetClassifier: {share:.1%}")
