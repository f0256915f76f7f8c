"""Texts: a few sentences in place of many, and the words of what was kept."""

# %% [markdown]
# Texts come from a CSV file with a column `text`, from a folder of text files per class, from the hub, or as a list.
# These sentences stand for yours.

# %%
import random

import attar

TOPICS = {
    "sports": ["match", "goal", "team", "score", "coach", "referee", "league", "striker"],
    "cooking": ["bake", "sauce", "oven", "flour", "spice", "butter", "recipe", "dough"],
    "space": ["orbit", "rocket", "moon", "probe", "launch", "planet", "comet", "crater"],
}
draw = random.Random(0)
sentences, labels = [], []
for topic, words in TOPICS.items():
    for _ in range(60):
        a, b = draw.sample(words, 2)
        sentences.append(f"the {a} and a {b} {draw.choice(['today', 'at last', 'as ever', 'again'])}")
        labels.append(topic)
split = attar.load((sentences, labels), vectors="learnt")
print(f"{len(split.train)} sentences, {split.spec.element.length} words each at most")

# %% [markdown]
# `vectors="learnt"` learns the vectors of words from the training texts alone; a file of word vectors
# (`vectors="glove.6B.100d.txt"`) knows more words. Selection returns sentences of yours.

# %%
budget = attar.Training(steps=200, batch=32)
kept = attar.reduce(split, "herding", per_class=3, training=budget)
for text, label in zip(kept.texts(), kept.data.y.tolist(), strict=True):
    print(f"{split.spec.target.names[label]:>8}: {text}")

# %%
scores = attar.evaluate(attar.infer(kept, draws=3), split)
print(f"nine sentences: accuracy {scores.accuracy:.2f}")

# %% [markdown]
# Methods that learn work on the vectors of words. `texts()` shows the nearest words, which need not be a sentence.

# %%
learnt = attar.reduce(split, "dm", per_class=1, training=budget, descent={"steps": 40, "lr": 1.0})
print("learnt:", learnt.texts()[0])
