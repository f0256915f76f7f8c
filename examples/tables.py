"""Tables: a few rows of a CSV file in place of all, with their row numbers and column names."""

# %% [markdown]
# Any CSV or Parquet file, DataFrame or pair of arrays will do; here it is the wine data that scikit-learn ships. The
# label column is called `label`, `target`, `class` or `y`, or named by `target=`.

# %%
from sklearn.datasets import load_wine

import attar

wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
wine.to_csv("wine.csv", index=False)
split = attar.load("wine.csv", target="cultivar")
print(f"{len(split.train)} training rows, {len(split.spec.element.columns)} columns, classes {split.spec.target.names}")

# %% [markdown]
# Three rows per class. Selected rows keep their numbers in your file, so you can look them up; learnt rows are new.

# %%
budget = attar.Training(steps=200, batch=32)
selected = attar.reduce(split, "k-center", per_class=3, training=budget)
learnt = attar.reduce(split, "dm", per_class=3, training=budget, descent={"steps": 60})
print("selected rows of wine.csv:", sorted(selected.rows))
print(wine.iloc[selected.rows[0]][["alcohol", "hue", "proline"]].to_dict())

# %%
for name, coreset in (("k-center", selected), ("dm", learnt)):
    scores = attar.evaluate(attar.infer(coreset, draws=3), split)
    print(f"{name:>8}: accuracy {scores.accuracy:.2f}, balanced {scores.balanced:.2f}")

# %% [markdown]
# Exports are in the units of your table.

# %%
learnt.export("few.npz")  # arrays; .csv lists rows, labels and weights; .parquet (extra `parquet`) is a table
