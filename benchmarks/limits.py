"""What the machine can do at most, by one small loop each, and what that means for a model.

The loops are C, compiled for this CPU on first use: fused multiply-adds on registers, sums over memory far larger than
any cache, and over and over again over blocks that a cache holds. They state what no program exceeds; they are no part of neo. Each thread counts its own processor time,
so that other programs on the machine do not lower the peak.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.work import Product, Work

#: Above this size, the weights of a model do not stay in the caches from call to call.
CACHED_BYTES = 12 * 2**20
#: Bytes that each thread reads: far more than a cache holds.
_MEMORY_BLOCK = 1 << 27

_SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__aarch64__)
#define IN_REGISTER "+w"
#else
#define IN_REGISTER "+x"
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float vec __attribute__((vector_size(LANES * sizeof(float))));

enum { kChains = 12, kRepeats = 1 << 20, kFloats = 1 << 25 };

typedef struct {
  float* block;
  long floats;  // of the block that are read
  void (*work)(float*, long);
  double seconds;
} Task;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void* run(void* task) {
  Task* self = task;
  double start = now();
  self->work(self->block, self->floats);
  self->seconds = now() - start;
  return 0;
}

// Twelve chains hide the latency of the unit; as names, not an array, they stay in registers.
#define EACH(DO) DO(a) DO(b) DO(c) DO(d) DO(e) DO(f) DO(g) DO(h) DO(i) DO(j) DO(k) DO(l)
#define DECLARE(x) vec x = term;
#define STEP(x) x = x * factor + term;
#define KEEP(x) __asm__ volatile("" : IN_REGISTER(x));
#define ADD(x) sum += x;

static void multiply_add(float* result, long unused) {
  (void)unused;
  vec factor = (vec){} + 0.999f, term = (vec){} + 0.001f, sum = (vec){};
  EACH(DECLARE)
  for (int r = 0; r < kRepeats; ++r) {
    EACH(STEP)
    EACH(KEEP)
  }
  EACH(ADD)
  *result = sum[0];
}

// kFloats in all, forward and backward in turn, as what is read again and again is read best.
static void read_block(float* block, long floats) {
  const vec* from = (const vec*)block;
  vec sums[8] = {};
  const long count = floats / LANES / 8;
  for (long done = 0, back = 0; done < kFloats / LANES / 8; done += count, back = !back)
    for (long i = 0; i < count; ++i) {
      const vec* at = from + 8 * (back ? count - 1 - i : i);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) sums[j] += at[j];
    }
  vec sum = (vec){};
  for (int j = 0; j < 8; ++j) sum += sums[j];
  *block = sum[0];
}

static double best_seconds(void (*work)(float*, long), float** blocks, long floats, int threads, int rounds) {
  double best = 1e9;
  pthread_t team[256];
  Task tasks[256];
  for (int round = 0; round < rounds; ++round) {
    for (int t = 0; t < threads; ++t) {
      tasks[t] = (Task){blocks[t], floats, work, 0};
      pthread_create(&team[t], 0, run, &tasks[t]);
    }
    double seconds = 0;
    for (int t = 0; t < threads; ++t) {
      pthread_join(team[t], 0);
      if (tasks[t].seconds > seconds) seconds = tasks[t].seconds;
    }
    if (seconds < best) best = seconds;
  }
  return best;
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > 256) return 1;
  float* blocks[256];
  for (int t = 0; t < threads; ++t) {
    blocks[t] = aligned_alloc(64, kFloats * sizeof(float));
    if (!blocks[t]) return 2;
    for (long i = 0; i < kFloats; ++i) blocks[t][i] = 1.0f;
  }
  double multiply = best_seconds(multiply_add, blocks, 0, threads, 15);
  printf("{\"gflops\": %g, \"gbytes\": [", 2e-9 * kChains * LANES * (double)kRepeats * threads / multiply);
  for (int i = 2; i < argc; ++i) {
    long floats = atol(argv[i]) / 4;
    if (floats < 8 * LANES || floats > kFloats) return 3;
    double reading = best_seconds(read_block, blocks, floats, threads, 15);
    printf("%s%g", i > 2 ? ", " : "", 4e-9 * kFloats * (double)threads / reading);
  }
  printf("]}\n");
  return 0;
}
"""


@dataclass(frozen=True)
class Limits:
    """Peak arithmetic and reading from memory with a number of threads.

    ``caches`` are those that a thread reads over and over again, the nearest first: bytes of a block that each thread
    keeps there, and 10**9 bytes per second of all threads.
    """

    threads: int
    gflops: float
    gbytes: float
    caches: tuple[tuple[int, float], ...] = ()

    def direct_ms(self, work: Work) -> float:
        """Return the least time of all products done directly.

        Each runs at the peak, or at the speed its weights arrive from memory where the weights of all exceed the
        caches, whichever is slower; the steps of a recurrent layer at the peak, or as fast as each reads its weights
        again. Everything else the model does is left out.
        """
        streams = work.weight_bytes > CACHED_BYTES
        return sum(self._direct_s(product, streams) for product in work.products) * 1e3

    def fast_ms(self, work: Work) -> float:
        """Return the least time of all products, each by the direct or the fast algorithm that takes least.

        As :meth:`direct_ms`; what fast algorithms transform and add is left out as well.
        """
        streams = work.weight_bytes > CACHED_BYTES
        return sum(self._fast_s(product, streams) for product in work.products) * 1e3

    def _direct_s(self, product: Product, streams: bool) -> float:
        arithmetic = 2e-9 * (product.macs - product.swept_macs) / self.gflops
        swept = max(2e-9 * product.swept_macs / self.gflops, product.sweeps * self.sweep_s(product.swept_bytes))
        return max(arithmetic + swept, self._arrival_s(product.weight_bytes, streams))

    def _fast_s(self, product: Product, streams: bool) -> float:
        fast = [max(2e-9 * macs / self.gflops, self._arrival_s(count, streams)) for macs, count in product.fast]
        return min([self._direct_s(product, streams), *fast])

    def _arrival_s(self, count: int, streams: bool) -> float:
        return 1e-9 * count / self.gbytes if streams else 0.0

    def sweep_s(self, count: int) -> float:
        """Return the seconds in which all threads together read so many bytes that they read before.

        What the nearest cache keeps comes from there, then the next, then memory.
        """
        total, kept = 0.0, 0
        for each, gbytes in (*self.caches, (count, self.gbytes)):
            part = min(count, each * self.threads) - kept
            if part > 0:
                total += 1e-9 * part / gbytes
                kept += part
        return total


def _cache_blocks(threads: int) -> list[tuple[int, int]]:
    """Return the bytes of a thread's block that each level of caches keeps, and those it is measured with."""
    sizes: dict[int, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[int(level)] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
    blocks, before = [], 0
    for level, size in sorted(sizes.items()):
        # Levels beyond the second are shared, also with others: a block is measured that is certain to be there.
        kept = size // (threads if level > 2 else 1)
        probe = min(kept // 2, 4 * before) if level > 2 else kept * 3 // 4
        blocks.append((kept, probe // 4096 * 4096))
        before = size
    return blocks


def measure_limits(threads: int) -> Limits | None:
    """Measure this machine, or return None where there is no C compiler.

    Parameters
    ----------
    threads : int
        How many threads to run at once.
    """
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "limits.c", Path(folder) / "limits"
        source.write_text(_SOURCE)
        flags = ["-O3", "-march=native", "-ffast-math", "-pthread"]
        subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True, capture_output=True)
        blocks = _cache_blocks(threads)
        arguments = map(str, (threads, *(probe for _, probe in blocks), _MEMORY_BLOCK))
        done = subprocess.run([str(program), *arguments], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    *caches, memory = found["gbytes"]
    return Limits(
        threads, found["gflops"], memory, tuple((kept, speed) for (kept, _), speed in zip(blocks, caches, strict=True))
    )
