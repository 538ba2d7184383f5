"""Generated selection problems: small random ones, and ones with the structure of real networks.

The networks are built the way neo states them: a variable per node, whose choices hold a value in some layout, and a
0/1 variable per value and wanted layout where a value has several readers, so that a conversion is paid once.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from neo.select import Problem, Resource

INF = math.inf


def random_problem(rng, *, variables=6, choices=4, resources=0, integer=True, density=None):
    """A small problem with forbidden choices, ties, free edges and, where asked for, limits that bite."""
    sizes = [int(n) for n in rng.integers(1, choices + 1, variables)]

    def values(shape):
        return rng.integers(0, 7, shape).astype(float) if integer else rng.random(shape) * 10

    costs = []
    for n in sizes:
        cost = values(n)
        if rng.random() < 0.2:
            cost[rng.random(n) < 0.3] = INF
        costs.append(cost)
    density = rng.random() if density is None else density
    edges = {}
    for u, v in itertools.combinations(range(variables), 2):
        if rng.random() >= density:
            continue
        matrix = values((sizes[u], sizes[v]))
        kind = rng.random()
        if kind < 0.3:
            matrix[rng.random(matrix.shape) < 0.3] = INF
        elif kind < 0.45:
            matrix = np.where(np.eye(*matrix.shape) > 0, 0.0, INF)
        elif kind < 0.55:
            matrix = np.zeros_like(matrix)
        edges[u, v] = matrix
    limited = []
    for k in range(resources):
        vectors = [values(n) * (rng.random() < 0.7) for n in sizes]
        matrices = {e: values(m.shape) for e, m in edges.items() if rng.random() < 0.2}
        least = sum(v.min() for v in vectors) + sum(m.min() for m in matrices.values())
        most = sum(v.max() for v in vectors) + sum(m.max() for m in matrices.values())
        limited.append(Resource(f"resource{k}", least + (most - least) * rng.random(), vectors, matrices))
    return Problem(costs, edges, limited)


def brute_force(problem):
    """Smallest total within the limits, and the smallest usage of each resource over what is allowed at all."""
    best = INF
    least = {r.name: INF for r in problem.resources}
    for choice in itertools.product(*(range(n) for n in problem.sizes)):
        total = problem.evaluate(choice)
        if math.isinf(total):
            continue
        for name, used in problem.usage(choice).items():
            least[name] = min(least[name], used)
        if problem.is_feasible(choice):
            best = min(best, total)
    return best, least


@dataclass
class _Node:
    inputs: list[int]
    choices: list[tuple]  # (cost, layouts wanted per input, layout given, packed bytes)
    absorbed: list[int] = field(default_factory=list)  # choices that a later node's group replaces


class Network:
    """Builds a problem node by node; a node is also the value it gives. Layout 0 is the plain one."""

    def __init__(self, seed=0, layouts=6, conv_choices=12):
        self.rng = np.random.default_rng(seed)
        self.layouts = layouts
        self.conv_choices = conv_choices
        self.nodes = []
        self.ties = []  # (member, its absorbed choice, root, root's fused choices)

    def conv(self, source, work=1.0):
        pairs = list(itertools.product(range(1, self.layouts), repeat=2))
        picked = self.rng.permutation(len(pairs))[: self.conv_choices - 1]
        choices = [(work * 400 * (3 + self.rng.random()), (0,), 0, 9.0 * work)]
        for k in picked:
            packed = 9.0 * work * (1 + 0.3 * self.rng.random())
            choices.append((work * 100 * (1 + self.rng.random()), (pairs[k][0],), pairs[k][1], packed))
        return self._add([source], choices)

    def same(self, *sources, work=0.05):
        """Elementwise: every input and the output in one layout."""
        choices = [(work * 100 * (1 + self.rng.random()), (s,) * len(sources), s, 0.0) for s in range(self.layouts)]
        return self._add(list(sources), choices)

    def concat(self, *sources):
        choices = [(2.0, (s,) * len(sources), s, 0.0) for s in range(self.layouts)]
        return self._add(list(sources), choices)

    def fuse(self, conv, add):
        """The add may be done inside the convolution that feeds it: the convolution's choices once more at the add."""
        member = len(self.nodes[conv].choices)
        source = self.nodes[conv].inputs[0]
        others = [i for i in self.nodes[add].inputs if i != conv]
        roots = []
        for cost, (wanted,), given, packed in list(self.nodes[conv].choices):
            if given == 0:
                continue
            roots.append(len(self.nodes[add].choices))
            layouts = tuple(
                wanted if i == source else given if i in others else None for i in [*self.nodes[add].inputs, source]
            )
            self.nodes[add].choices.append((cost * 1.02, layouts, given, packed))
        self.nodes[add].inputs.append(source)
        for i, choice in enumerate(self.nodes[add].choices):
            missing = len(self.nodes[add].inputs) - len(choice[1])
            self.nodes[add].choices[i] = (choice[0], choice[1] + (None,) * missing, *choice[2:])
        self.nodes[conv].choices.append((0.0, (None,), None, 0.0))
        self.ties.append((conv, member, add, roots))

    def problem(self, limits=None):
        """The arrays; `limits`: per resource ("packed_bytes", or any name for random usage) a share of its range."""
        costs = [np.array([c[0] for c in node.choices]) for node in self.nodes]
        packed = [np.array([c[3] for c in node.choices]) for node in self.nodes]
        edges = []
        for member, absorbed, root, fused in self.ties:
            ours = np.arange(len(costs[member])) == absorbed
            theirs = np.isin(np.arange(len(costs[root])), fused)
            edges.append((member, root, np.where(ours[:, None] == theirs[None, :], 0.0, INF)))
        readers = {}
        for v, node in enumerate(self.nodes):
            for i, source in enumerate(node.inputs):
                readers.setdefault(source, []).append((v, i))
        for source, uses in readers.items():
            size = 30 * (1 + self.rng.random())
            # A member that is absorbed gives nothing; nobody reads it then.
            gives = [c[2] for c in self.nodes[source].choices]
            wants = [[c[1][i] for c in self.nodes[v].choices] for v, i in uses]

            def adapt(give, want, size=size):
                return 0.0 if give is None or want is None or give == want else size * (1 + 0.1 * abs(give - want))

            if len(uses) == 1:
                matrix = np.array([[adapt(g, w) for w in wants[0]] for g in gives])
                edges.append((source, uses[0][0], matrix))
                continue
            for s in sorted({w for want in wants for w in want if w is not None}):
                on = len(costs)
                costs.append(np.zeros(2))
                packed.append(np.zeros(2))
                edges.append((source, on, np.array([[0.0, adapt(g, s)] for g in gives])))
                for (v, _), want in zip(uses, wants, strict=True):
                    edges.append((v, on, np.array([[INF if w == s else 0.0, 0.0] for w in want])))
        resources = []
        for name, share in (limits or {}).items():
            used = packed if name == "packed_bytes" else [self.rng.random(p.size) * (p > 0) for p in packed]
            least = sum(v.min() for v in used)
            most = sum(v.max() for v in used)
            resources.append(Resource(name, least + share * (most - least), used))
        return Problem(costs, edges, resources)

    def _add(self, inputs, choices):
        self.nodes.append(
            _Node(
                [i for i in inputs if i is not None],
                choices if inputs != [None] else [(c[0], (), *c[2:]) for c in choices],
            )
        )
        return len(self.nodes) - 1


def chain(length=60, seed=0, **options):
    """VGG: one convolution after another."""
    net = Network(seed, **options)
    x = None
    for _ in range(length):
        x = net.conv(x)
    return net


def residual(blocks=16, seed=0, fused=True, **options):
    """ResNet-50: three convolutions a block, an add with what came before, which two convolutions may take in."""
    net = Network(seed, **options)
    x = net.same(net.conv(None))
    for block in range(blocks):
        branch = net.same(net.conv(net.same(net.conv(x))))
        branch = net.conv(branch)
        shortcut = net.conv(x) if block in (0, 3, 7, 13) else x
        x = net.same(branch, shortcut)
        if fused:
            net.fuse(branch, x)
            if block in (0, 3, 7, 13):
                net.fuse(shortcut, x)
        x = net.same(x)
    return net


def dense(layers=(6, 12, 24, 16), seed=0, growing=True, **options):
    """DenseNet-121: each layer reads the concat of all before, as a chain of growing concats or all at once."""
    net = Network(seed, **options)
    x = net.same(net.conv(None))
    for count in layers:
        parts = [x]
        for _ in range(count):
            bottleneck = net.conv(net.same(net.same(x)))
            new = net.conv(net.same(net.same(bottleneck)), work=0.5)
            parts.append(new)
            x = net.concat(x, new) if growing else net.concat(*parts)
        x = net.same(net.conv(net.same(net.same(x))))
    return net


def inception(modules=9, seed=0, **options):
    """GoogLeNet: four branches from one value into one concat."""
    net = Network(seed, **options)
    x = net.conv(net.same(net.conv(None)))
    for _ in range(modules):
        a = net.same(net.conv(x))
        b = net.same(net.conv(net.same(net.conv(x))))
        c = net.same(net.conv(net.same(net.conv(x))))
        d = net.same(net.conv(net.same(x)))
        x = net.concat(a, b, c, d)
    return net


def pyramid(levels=3, seed=0, **options):
    """YOLOv3: a residual trunk, whose levels are read again far behind through upsampling and concat."""
    net = Network(seed, **options)
    x = net.same(net.conv(None))
    taps = []
    for level in range(levels + 2):
        x = net.same(net.conv(x))
        for _ in range((1, 2, 8, 8, 4)[level % 5]):
            x = net.same(net.same(net.conv(net.same(net.conv(x)))), x)
        taps.append(x)
    heads = []
    for level in range(levels):
        for _ in range(5):
            x = net.same(net.conv(x))
        heads.append(net.conv(net.same(net.conv(x))))
        if level < levels - 1:
            x = net.concat(net.same(net.same(net.conv(x))), taps[-2 - level])
    return net


def detector(scales=6, seed=0, **options):
    """SSD: heads on every scale, all flattened into two wide concats."""
    net = Network(seed, **options)
    x = net.same(net.conv(None))
    boxes, scores = [], []
    for _ in range(scales):
        for _ in range(3):
            x = net.same(net.conv(x))
        boxes.append(net.same(net.conv(x)))
        scores.append(net.same(net.conv(x)))
    net.concat(*boxes)
    net.concat(*scores)
    return net


def grid(rows, columns, choices, seed=0):
    """A grid of random pairwise costs: wide in every order."""
    rng = np.random.default_rng(seed)
    costs = [rng.random(choices) for _ in range(rows * columns)]
    edges = {}
    for r, c in itertools.product(range(rows), range(columns)):
        if c + 1 < columns:
            edges[r * columns + c, r * columns + c + 1] = rng.random((choices, choices))
        if r + 1 < rows:
            edges[r * columns + c, (r + 1) * columns + c] = rng.random((choices, choices))
    return Problem(costs, edges)


NETWORKS = {
    "chain": chain,
    "residual": residual,
    "dense": dense,
    "inception": inception,
    "pyramid": pyramid,
    "detector": detector,
}
