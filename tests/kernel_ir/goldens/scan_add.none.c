#include <math.h>
#include <string.h>
static inline int atomic_min_int32(int *p, int v) {
  const int o = *p;
  *p = v < o ? v : o;
  return o;
}
void scan_add(void *const *args) {
  const int n = *(const int *)args[0];
  const int *starts = args[1];
  const float *totals = args[2];
  float *y = args[3];
  for (int block = 0; block < (n + 511) / 512; ++block) {
    int first_start[1];
    memset(first_start, 0xff, sizeof first_start);
    int first[64];
    for (int t = 0; t < 64; ++t) {
      const int thread = t;
      first[t] = block * 512;
      if (thread == 0) {
        first_start[0] = 512;
      }
    }
    for (int t = 0; t < 64; ++t) {
      const int thread = t;
      for (int i = 0; i < 8; ++i) {
        const int i_2 = first[t] + (i * 64 + thread);
        if (i_2 < n) {
          if (starts[i_2] != 0) {
            atomic_min_int32(first_start, i * 64 + thread);
          }
        }
      }
    }
    for (int t = 0; t < 64; ++t) {
      const int thread = t;
      for (int i_3 = 0; i_3 < 8; ++i_3) {
        const int i_4 = first[t] + (i_3 * 64 + thread);
        if (i_4 < n && i_3 * 64 + thread < first_start[0]) {
          y[i_4] = y[i_4] + totals[block];
        }
      }
    }
  }
}
