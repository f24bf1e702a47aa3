"""A hierarchy from the names of the classes: nothing needs to be trained for it.

Any function will do that turns names into vectors, one row a name. Sentence embeddings know
what words mean: pip install sentence-transformers, then

    embed = SentenceTransformer("all-MiniLM-L6-v2").encode

They need a download, so this script makes do with letters, and knows what names look like.

    python examples/class_names.py
"""

import csv
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy


def embed_letters(names):
    """Return how often each run of two to four letters is in each name, weighted by rarity."""
    vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4))
    return vectoriser.fit_transform(names).toarray()


def hierarchy_from_names(names, embed=embed_letters):
    return Hierarchy.from_embeddings(embed(names), class_names=names)


with (Path(__file__).parent / "data" / "requests.csv").open(encoding="utf-8") as file:
    intents = sorted({row["intent"].replace("_", " ") for row in csv.DictReader(file)})

hierarchy = hierarchy_from_names(intents)
print(hierarchy)

criterion = CoarseToFineLoss(hierarchy)  # in place of nn.CrossEntropyLoss, in any loop
curriculum = Curriculum(criterion, epochs=9)
for epoch in range(12):
    clusters = hierarchy.num_clusters[criterion.level]
    print(f"epoch {epoch}: level {criterion.level}, {clusters} clusters")
    curriculum.step()
