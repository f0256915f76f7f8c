"""Tables: a few rows of a CSV file in place of all, with their row numbers and column names."""

# %% [markdown]
# Any CSV or Parquet file, DataFrame or pair of arrays will do; here it is the wine data that scikit-learn ships, with a
# column of categories and some gaps. The label column is called `label`, `target`, `class` or `y`, or named by
# `target=`. What each column is gets inferred; `columns=` says otherwise.

# %%
import pandas
from sklearn.datasets import load_wine

import attar

wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
wine["colour"] = pandas.cut(wine.pop("color_intensity"), 3, labels=["light", "medium", "dark"])
wine.loc[::10, "hue"] = None
wine.to_csv("wine.csv", index=False)
split = attar.load("wine.csv", target="cultivar", columns={"colour": ["light", "medium", "dark"]})
print(f"{len(split.train)} training rows, classes {split.spec.target.names}; columns: {split.spec.element}")

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
# Learnt rows decode to valid ones: whole numbers where yours are whole, and one of the three colours. Networks are
# trained on the numbers behind them.

# %%
print(pandas.DataFrame(learnt.values())[["alcohol", "proline", "hue", "colour"]].head(3))
learnt.export("few.csv")  # these values; few.npz has the numbers, few.parquet (extra `parquet`) both
