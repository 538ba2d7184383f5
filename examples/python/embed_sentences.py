"""Embed sentences: ``python embed_sentences.py MODEL.onnx VOCAB.txt SENTENCE SENTENCE...``.

MODEL is an encoder of BERT's family, such as all-MiniLM-L6-v2: tokens [N, T] and their mask to a vector [N, T, d] for each
token. VOCAB.txt has a word, or a piece of one, on each line. Prints the cosine of each sentence's vector and the first's.
"""

import re
import sys
import unicodedata
from pathlib import Path

import neo
import numpy as np

LONGEST = 256


def pieces(word, ids):
    """A word as pieces of the vocabulary, each the longest that fits."""
    found, start = [], 0
    while start < len(word):
        before = "##" if start else ""
        end = next((e for e in range(len(word), start, -1) if before + word[start:e] in ids), None)
        if end is None:
            return [ids["[UNK]"]]
        found.append(ids[before + word[start:end]])
        start = end
    return found


def tokens(sentence, ids):
    """The numbers of a sentence's pieces, in small letters without accents."""
    letters = [c for c in unicodedata.normalize("NFD", sentence.lower()) if unicodedata.category(c) != "Mn"]
    words = re.findall(r"[^\W_]+|[^\w\s]|_", "".join(letters))
    return [ids["[CLS]"], *[i for w in words for i in pieces(w, ids)][: LONGEST - 2], ids["[SEP]"]]


def embed(module, sentences, ids):
    """A vector of length 1 for each sentence [N, d]: the mean of its tokens' vectors."""
    rows = [tokens(s, ids) for s in sentences]
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    numbers = np.full(mask.shape, ids["[PAD]"], np.int64)
    numbers[mask == 1] = np.concatenate(rows)
    given = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
    results = module.run({t.name: given[t.name] for t in module.inputs})
    means = (results[module.outputs[0].name] * mask[..., None]).sum(1) / lengths[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def main(model, vocabulary, *sentences):
    """Print how alike each sentence and the first are."""
    lines = Path(vocabulary).read_text(encoding="utf-8").splitlines()
    vectors = embed(neo.compile(model), sentences, {line: i for i, line in enumerate(lines)})
    for sentence, vector in zip(sentences, vectors, strict=True):
        print(f"{vector @ vectors[0]:6.2f}  {sentence}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 3 else __doc__)
