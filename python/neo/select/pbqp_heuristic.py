"""Partitioned boolean quadratic programming: the approximate solver of NeoCPU 3.3.2."""

from __future__ import annotations

from neo.select.problem import Array, Problem


def pbqp(problem: Problem) -> list[int]:
    """Partitioned boolean quadratic programming with the RN heuristic, the approximate solver of NeoCPU 3.3.2.

    Variables with at most two undecided neighbours are eliminated exactly (R0, R1, R2); where none is left, the one
    with the most is decided by its cost and the best of each neighbour (Hames and Scholz, Nearly optimal register
    allocation with PBQP, 2006).
    """
    costs = [c.copy() for c in problem.costs]
    edges: list[dict[int, Array]] = [{} for _ in costs]
    for (u, v), m in problem.edges.items():
        edges[u][v], edges[v][u] = m, m.T
    left = set(range(len(costs)))
    trail: list[tuple[int, Array, dict[int, Array]]] = []
    choice = [-1] * len(costs)

    def cut(v: int) -> dict[int, Array]:
        around, edges[v] = edges[v], {}
        for other in around:
            del edges[other][v]
        left.discard(v)
        return around

    while left:
        v = min(left, key=lambda u: (len(edges[u]), u))
        if len(edges[v]) > 2:
            v = max(left, key=lambda u: (len(edges[u]), -u))
            total = costs[v]
            for other, m in edges[v].items():
                total = total + (m + costs[other]).min(axis=1)
            choice[v] = int(total.argmin())
            for other, m in cut(v).items():
                costs[other] = costs[other] + m[choice[v]]
            continue
        around = cut(v)
        trail.append((v, costs[v], around))
        if len(around) == 1:
            ((other, m),) = around.items()
            costs[other] = costs[other] + (m + costs[v][:, None]).min(axis=0)
        elif len(around) == 2:
            (a, ma), (b, mb) = around.items()
            pair = (ma[:, :, None] + mb[:, None, :] + costs[v][:, None, None]).min(axis=0)
            pair = pair + edges[a][b] if b in edges[a] else pair
            edges[a][b], edges[b][a] = pair, pair.T
    for v, cost, around in reversed(trail):
        total = cost
        for other, m in around.items():
            total = total + m[:, choice[other]]
        choice[v] = int(total.argmin())
    return choice
