"""What the machine can do at most, by one small loop each, and what that means for a model.

The loops are C, compiled for this CPU on first use: fused multiply-adds on registers, and sums over memory far larger
than any cache. They state what no program exceeds; they are no part of neo. Each thread counts its own processor time,
so that other programs on the machine do not lower the peak.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.work import Work

#: Above this size, the weights of a model do not stay in the caches from call to call.
CACHED_BYTES = 12 * 2**20

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
  void (*work)(float*);
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
  self->work(self->block);
  self->seconds = now() - start;
  return 0;
}

// Twelve chains hide the latency of the unit; as names, not an array, they stay in registers.
#define EACH(DO) DO(a) DO(b) DO(c) DO(d) DO(e) DO(f) DO(g) DO(h) DO(i) DO(j) DO(k) DO(l)
#define DECLARE(x) vec x = term;
#define STEP(x) x = x * factor + term;
#define KEEP(x) __asm__ volatile("" : IN_REGISTER(x));
#define ADD(x) sum += x;

static void multiply_add(float* result) {
  vec factor = (vec){} + 0.999f, term = (vec){} + 0.001f, sum = (vec){};
  EACH(DECLARE)
  for (int r = 0; r < kRepeats; ++r) {
    EACH(STEP)
    EACH(KEEP)
  }
  EACH(ADD)
  *result = sum[0];
}

static void read_memory(float* block) {
  const vec* from = (const vec*)block;
  vec sums[8] = {};
  for (long i = 0; i < kFloats / LANES; i += 8)
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sums[j] += from[i + j];
  vec sum = (vec){};
  for (int j = 0; j < 8; ++j) sum += sums[j];
  *block = sum[0];
}

static double best_seconds(void (*work)(float*), float** blocks, int threads, int rounds) {
  double best = 1e9;
  pthread_t team[256];
  Task tasks[256];
  for (int round = 0; round < rounds; ++round) {
    for (int t = 0; t < threads; ++t) {
      tasks[t] = (Task){blocks[t], work, 0};
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
  double multiply = best_seconds(multiply_add, blocks, threads, 15);
  double reading = best_seconds(read_memory, blocks, threads, 15);
  printf("{\"gflops\": %g, \"gbytes\": %g}\n", 2e-9 * kChains * LANES * (double)kRepeats * threads / multiply,
         4e-9 * kFloats * (double)threads / reading);
  return 0;
}
"""


@dataclass(frozen=True)
class Limits:
    """Peak arithmetic and reading from memory with a number of threads."""

    threads: int
    gflops: float
    gbytes: float

    def direct_ms(self, work: Work) -> float:
        """Return the least time of all products done directly.

        Each runs at the peak, or at the speed its weights arrive from memory where the weights of all exceed the
        caches, whichever is slower. Everything else the model does is left out.
        """
        streams = work.weight_bytes > CACHED_BYTES
        total = 0.0
        for product in work.products:
            arithmetic = 2e-9 * product.macs / self.gflops
            arrival = 1e-9 * product.weight_bytes / self.gbytes if streams else 0.0
            total += max(arithmetic, arrival)
        return total * 1e3


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
        done = subprocess.run([str(program), str(threads)], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return Limits(threads, found["gflops"], found["gbytes"])
