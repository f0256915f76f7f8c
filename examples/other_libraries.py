"""A coreset outside this library: in a plain PyTorch loop and in scikit-learn (extra `sklearn`)."""

import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader

import attar

split = attar.load("digits")
budget = attar.Training(steps=100, batch=64)  # of the network through which herding looks
attar.reduce(split, "herding", per_class=10, training=budget).save("digits-herding-10.safetensors")
coreset = attar.Coreset.load("digits-herding-10.safetensors")

# PyTorch: a TensorDataset of scaled examples and labels.
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(50):
    for x, y in DataLoader(coreset.dataset(), batch_size=32, shuffle=True):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
test = split.test.transformed(coreset.data.spec.transform)  # new data must be scaled as the coreset's was
correct = (model(test.x).argmax(1) == test.y).float().mean()
print(f"PyTorch loop on {len(coreset)} examples: {correct:.1%} of {len(test)} test digits")

# scikit-learn: flat arrays for any estimator.
estimator = LogisticRegression(max_iter=1000).fit(*coreset.numpy())
accuracy = estimator.score(test.x.flatten(1).numpy(), test.y.numpy())
print(f"LogisticRegression on the same: {accuracy:.1%}")

# Or reduction and training in one estimator, which fits pipelines and grid searches.
classifier = attar.CoresetClassifier("uniform", per_class=10, image_shape=(1, 8, 8))
classifier.fit(split.train.x.flatten(1).numpy(), split.train.y.numpy())
print(f"CoresetClassifier: {classifier.score(split.test.x.flatten(1).numpy(), split.test.y.numpy()):.1%}")
