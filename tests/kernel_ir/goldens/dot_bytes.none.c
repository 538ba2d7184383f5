#include <math.h>
#include <string.h>
static inline int dot4(int a, int b, int c) {
  return (int)((unsigned int)c + (unsigned int)((signed char)a * (signed char)b + (signed char)(a >> 8) * (signed char)(b >> 8) + (signed char)(a >> 16) * (signed char)(b >> 16) + (signed char)(a >> 24) * (signed char)(b >> 24)));
}
void dot_bytes(void *const *args) {
  const int n = *(const int *)args[0];
  const int *x = args[1];
  const int *z = args[2];
  const int *c = args[3];
  int *y = args[4];
  for (int gx = 0; gx < (n + 63) / 64; ++gx) {
    for (int t = 0; t < 64; ++t) {
      const int lx = t;
      const int i = gx * 64 + lx;
      if (i < n) {
        y[i] = dot4(x[i], z[i], c[i]);
      }
    }
  }
}
