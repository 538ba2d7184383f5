"use strict";
// Layered drawing of a directed acyclic graph: ranks by longest path, order within a rank by barycentres, places by
// least squares, edges bent at invisible nodes.

// `nodes`: {key, width, height} in an order in which every edge leads from an earlier to a later one. `edges`: {from,
// to, join} by key, with `fromX` and `toX` counted from the middle of the node; edges of one `join` from one node share
// their way. Sets x and y (left, top) of the nodes; returns width, height and the points of each edge.
function layered(nodes, edges, { gapX = 26, gapY = 46 } = {}) {
  const items = new Map(nodes.map((node, i) => [node.key, { node, i, width: node.width, height: node.height, rank: 0, up: [], down: [] }]));
  const real = [...items.values()];
  const ends = edges.map((edge) => [items.get(edge.from), items.get(edge.to), edge]);
  assignRanks(real, ends);
  const ranks = [];
  const put = (item) => (ranks[item.rank] = ranks[item.rank] || []).push(item);
  real.forEach(put);
  const ways = bend(ends, put);
  order(ranks);
  place(ranks, gapX);
  return finish(ranks, real, ways, gapY);
}

function assignRanks(real, ends) {
  const outgoing = new Map(real.map((item) => [item, []]));
  const incoming = new Map(real.map((item) => [item, []]));
  for (const [from, to] of ends) {
    outgoing.get(from).push(to);
    incoming.get(to).push(from);
  }
  for (const item of real) for (const to of outgoing.get(item)) to.rank = Math.max(to.rank, item.rank + 1);
  // A node moves down to its first reader where that makes no more edges longer than shorter.
  for (const item of [...real].reverse()) {
    if (outgoing.get(item).length > 0 && incoming.get(item).length <= outgoing.get(item).length) {
      item.rank = Math.min(...outgoing.get(item).map((to) => to.rank)) - 1;
    }
  }
  const first = Math.min(...real.map((item) => item.rank), 0);
  for (const item of real) item.rank -= first;
}

// Invisible nodes where an edge passes a rank.
function bend(ends, put) {
  const shared = new Map();
  return ends.map(([from, to, edge]) => {
    const way = [{ item: from, dx: edge.fromX || 0 }];
    let last = from;
    let dx = edge.fromX || 0;
    for (let rank = from.rank + 1; rank < to.rank; ++rank) {
      const key = `${from.i} ${edge.join} ${rank}`;
      let passing = shared.get(key);
      if (!passing) {
        passing = { node: null, width: 1, height: 0, rank, up: [], down: [] };
        shared.set(key, passing);
        put(passing);
        link(last, passing, dx, 0);
      }
      way.push({ item: passing, dx: 0 });
      last = passing;
      dx = 0;
    }
    link(last, to, dx, edge.toX || 0);
    way.push({ item: to, dx: edge.toX || 0 });
    return way;
  });
}

function link(from, to, fromX, toX) {
  const weight = (from.node ? 1 : 3) * (to.node ? 1 : 3);
  from.down.push({ other: to, mine: fromX, theirs: toX, weight });
  to.up.push({ other: from, mine: toX, theirs: fromX, weight });
}

function order(ranks) {
  const number = () => ranks.forEach((rank) => rank.forEach((item, i) => (item.at = i)));
  number();
  let best = null;
  let fewest = Infinity;
  for (let sweep = 0; sweep < 12; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const rank of downwards ? ranks : [...ranks].reverse()) {
      for (const item of rank) {
        const links = downwards ? item.up : item.down;
        const sum = links.reduce((total, one) => total + one.other.at + one.theirs / 1e4, 0);
        item.want = links.length ? sum / links.length : item.at;
      }
      rank.sort((a, b) => a.want - b.want || a.at - b.at);
      rank.forEach((item, i) => (item.at = i));
    }
    const crossings = ranks.reduce((sum, rank) => sum + crossingsBelow(rank), 0);
    if (crossings < fewest) {
      fewest = crossings;
      best = ranks.map((rank) => [...rank]);
    }
    if (crossings === 0) break;
  }
  best.forEach((rank, i) => (ranks[i] = rank));
  number();
}

function crossingsBelow(rank) {
  const ends = [];
  for (const item of rank) ends.push(...item.down.map((one) => one.other.at).sort((a, b) => a - b));
  let crossings = 0;
  const seen = [];
  for (const end of ends) {
    let low = 0;
    let high = seen.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (seen[middle] <= end) low = middle + 1;
      else high = middle;
    }
    crossings += seen.length - low;
    seen.splice(low, 0, end);
  }
  return crossings;
}

// Middles `x` of all items: each rank in turn as near as possible to where its neighbours want it.
function place(ranks, gapX) {
  const apart = (a, b) => (a.width + b.width) / 2 + (a.node && b.node ? gapX : gapX * 0.7);
  for (const rank of ranks) {
    let x = 0;
    rank.forEach((item, i) => (item.x = x += i ? apart(rank[i - 1], item) : 0));
    const middle = x / 2;
    for (const item of rank) item.x -= middle;
  }
  for (let sweep = 0; sweep < 16; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const rank of downwards ? ranks : [...ranks].reverse()) {
      const wants = rank.map((item) => {
        const links = sweep >= 12 ? [...item.up, ...item.down] : downwards ? item.up : item.down;
        const weight = links.reduce((sum, one) => sum + one.weight, 0);
        if (weight === 0) return [item.x, 0.05];
        const sum = links.reduce((total, one) => total + one.weight * (one.other.x + one.theirs - one.mine), 0);
        // Wide ones are drawn to the middle, or a long row of opened blocks would wander off to one side.
        const pull = item.width > 300 ? 0.15 * weight : 0;
        return [sum / (weight + pull), weight + pull];
      });
      settle(rank, wants, apart);
    }
  }
}

// Least squares under "each at least so far right of the one before": pools of neighbours that touch.
function settle(rank, wants, apart) {
  const pools = [];
  let shift = 0;
  rank.forEach((item, i) => {
    if (i) shift += apart(rank[i - 1], item);
    item.shift = shift;
    pools.push({ sum: (wants[i][0] - shift) * wants[i][1], weight: wants[i][1], size: 1 });
    while (pools.length > 1) {
      const [before, last] = pools.slice(-2);
      if (before.sum / before.weight <= last.sum / last.weight) break;
      pools.splice(-2, 2, { sum: before.sum + last.sum, weight: before.weight + last.weight, size: before.size + last.size });
    }
  });
  let i = 0;
  for (const pool of pools) {
    for (let n = 0; n < pool.size; ++n, ++i) rank[i].x = pool.sum / pool.weight + rank[i].shift;
  }
}

function finish(ranks, real, ways, gapY) {
  const left = Math.min(...real.map((item) => item.x - item.width / 2), ...ranks.flat().map((item) => item.x - 6));
  const right = Math.max(...real.map((item) => item.x + item.width / 2), ...ranks.flat().map((item) => item.x + 6));
  let y = 0;
  for (const rank of ranks) {
    const height = Math.max(...rank.map((item) => item.height));
    for (const item of rank) {
      item.top = y;
      item.rankHeight = height;
    }
    y += height + gapY;
  }
  for (const item of real) {
    item.node.x = item.x - item.width / 2 - left;
    item.node.y = item.top;
  }
  const points = ways.map((way) =>
    way.map(({ item, dx }) => ({ x: item.x + dx - left, top: item.top, bottom: item.top + (item.node ? item.height : item.rankHeight), rankBottom: item.top + item.rankHeight })),
  );
  return { width: right - left, height: y - gapY, points };
}

// A path through the points of an edge: straight beside nodes, curved between ranks.
function pathOf(points) {
  const round = (n) => Math.round(n * 10) / 10;
  let text = `M${round(points[0].x)},${round(points[0].bottom)}`;
  let from = points[0];
  if (from.rankBottom > from.bottom) text += `V${round(from.rankBottom)}`;
  for (const to of points.slice(1)) {
    const middle = (from.rankBottom + to.top) / 2;
    text += `C${round(from.x)},${round(middle)} ${round(to.x)},${round(middle)} ${round(to.x)},${round(to.top)}`;
    if (to !== points[points.length - 1]) text += `V${round(to.rankBottom)}`;
    from = to;
  }
  return text;
}
