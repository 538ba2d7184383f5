"""Strings and RE2's syntax."""

import numpy as np
import pytest
from neo.errors import ModelError, UnsupportedError

from tests.ops.single_node import run


def matches(pattern, text):
    return bool(run("RegexFullMatch", np.array([text], object), pattern=pattern)[0])


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", "", "a"),
        ("a|bc*", "bccc", "abc"),
        ("(ab){2,3}", "ababab", "abababab"),
        ("(ab){2}", "abab", "ab"),
        ("a{0}b", "b", "ab"),
        ("x{,2}", "x{,2}", "xx"),
        (r"\d+\.\d{2}", "12.50", "12.5"),
        ("[^a-c]+", "xyz", "xaz"),
        ("[]a]+", "]a]", "b"),
        ("[a-]+", "a-a", "b"),
        ("[[:alpha:]_]+", "ab_Z", "a1"),
        ("(?i)straße", "STRAßE", "strasse"),
        ("(?i:A)b", "ab", "aB"),
        (".", "é", "\n"),
        ("(?s).", "\n", ""),
        (r"\Qa.b\E", "a.b", "axb"),
        (r"\x41\x{1F600}", "A😀", "A"),
        (r"a\bb|a\b c", "a c", "ab"),
        ("^a$", "a", "a\n"),
        ("(?m)a$\n^b", "a\nb", "a b"),
        ("(?P<year>[0-9]{4})", "2026", "26"),
        ("a+?b*?", "aab", "c"),
        ("(a|b)*(c|)", "abab", "abcc"),
        (r"(\W)[\w.+-]+@[\w-]+\.[\w.-]+", "!me@site.org", "me@site"),
    ],
)
def test_full_match(pattern, yes, no):
    assert matches(pattern, yes)
    assert not matches(pattern, no)


def test_match_takes_linear_time():
    assert not matches("(a*)*" * 5 + "b", "a" * 2000)


@pytest.mark.parametrize("pattern", ["(", ")", "[a", "*a", "a**", "a{2,1}", "a{1001}", r"\q", "(?=a)", "(?<!a)", "(?z)", "[b-a]", "\\"])
def test_malformed_patterns_are_refused(pattern):
    with pytest.raises(ModelError, match="Regex"):
        matches(pattern, "")


@pytest.mark.parametrize("pattern", [r"\pL", r"\C", "(" * 600 + ")" * 600, "((a{1000}){1000}){1000}"])
def test_patterns_beyond_the_matcher_are_named(pattern):
    with pytest.raises(UnsupportedError, match="Regex"):
        matches(pattern, "")


def test_case_changes_after_stop_words():
    x = np.array(["Über", "und", "ΑΒΓ", "Жук"], object)
    got = run("StringNormalizer", x, case_change_action="LOWER", stopwords=["UND"])
    assert got.tolist() == ["über", "αβγ", "жук"]
    assert run("StringNormalizer", got, case_change_action="UPPER").tolist() == ["ÜBER", "ΑΒΓ", "ЖУК"]


def test_nothing_left_is_one_empty_string():
    assert run("StringNormalizer", np.array([["a"]], object), stopwords=["a"]).tolist() == [[""]]


def test_split_pads_and_counts():
    y, counts = run("StringSplit", np.array(["a b  c ", "", "d"], object), outputs=2)
    assert y.tolist() == [["a", "b", "c"], ["", "", ""], ["d", "", ""]]
    assert counts.tolist() == [3, 0, 1]
    y, counts = run("StringSplit", np.array(["1,2,3", ""], object), outputs=2, delimiter=",", maxsplit=1)
    assert (y.tolist(), counts.tolist()) == ([["1", "2,3"], ["", ""]], [2, 1])


def test_concat_broadcasts():
    got = run("StringConcat", np.array([["a"], ["b"]], object), np.array(["x", "y"], object))
    assert got.tolist() == [["ax", "ay"], ["bx", "by"]]


def test_ngrams_are_weighted_by_their_place_in_the_pool():
    attrs = {
        "min_gram_length": 1,
        "max_gram_length": 1,
        "max_skip_count": 0,
        "ngram_counts": [0],
        "ngram_indexes": [1, 0],
        "pool_int64s": [5, 6],
        "weights": [10.0, 100.0],
    }
    x = np.array([5, 5, 6])
    assert run("TfIdfVectorizer", x, mode="TF", **attrs).tolist() == [1, 2]
    assert run("TfIdfVectorizer", x, mode="TFIDF", **attrs).tolist() == [100, 20]
    assert run("TfIdfVectorizer", x, mode="IDF", **attrs).tolist() == [100, 10]
