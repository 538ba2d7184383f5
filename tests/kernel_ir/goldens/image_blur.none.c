#include <math.h>
#include <string.h>
typedef float float32x4 __attribute__((vector_size(16)));
static inline float32x4 splat_float32x4(float a) {
  float32x4 r;
  for (int i = 0; i < 4; ++i) r[i] = a;
  return r;
}
static inline int max_int32(int a, int b) {
  return a > b ? a : b;
}
static inline int min_int32(int a, int b) {
  return a < b ? a : b;
}
static inline float32x4 fma_float32x4(float32x4 a, float32x4 b, float32x4 c) {
  float32x4 r;
  for (int i = 0; i < 4; ++i) r[i] = fmaf(a[i], b[i], c[i]);
  return r;
}
static inline void store_float32x4(float *p, float32x4 a) {
  memcpy(p, &a, sizeof a);
}
void image_blur(void *const *args) {
  const int n = *(const int *)args[0];
  const float32x4 *x = args[1];
  const float32x4 *w = args[2];
  float *y = args[3];
  for (int gx = 0; gx < (n + 63) / 64; ++gx) {
    for (int t = 0; t < 64; ++t) {
      const int lx = t;
      const int i = n - 1;
      const int i_2 = gx * 64 + lx;
      if (i_2 < n) {
        float32x4 sum;
        sum = splat_float32x4(0.0f);
        for (int tap = 0; tap < 3; ++tap) {
          const float32x4 texel = x[min_int32(max_int32(i_2 + tap - 1, 0), i)];
          sum = fma_float32x4(texel, w[tap], sum);
        }
        store_float32x4(y + i_2 * 4, sum * splat_float32x4(w[2][3]));
      }
    }
  }
}
