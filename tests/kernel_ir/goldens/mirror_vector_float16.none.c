#include <math.h>
#include <string.h>
static inline float widen_float16(const _Float16 *p) {
  return (float)*p;
}
typedef float float32x4 __attribute__((vector_size(16)));
static inline void narrow_float16(float a, _Float16 *p) {
  *p = (_Float16)a;
}
static inline void narrow_float16x4(float32x4 a, _Float16 *p) {
  for (int i = 0; i < 4; ++i) narrow_float16(a[i], p + i);
}
void mirror_vector_float16(void *const *args) {
  const int n = *(const int *)args[0];
  const _Float16 *x = args[1];
  _Float16 *y = args[2];
  _Float16 *z = args[3];
  for (int gx = 0; gx < (n + 3) / 4; ++gx) {
    for (int t = 0; t < 1; ++t) {
      const int i = n - 1;
      const int first = gx * 4;
      const int i_2 = i - first;
      const int i_3 = i - (first + 1);
      const int i_4 = i - (first + 2);
      const int i_5 = i - (first + 3);
      if (first + 4 <= n) {
        narrow_float16x4((float32x4){widen_float16(x + i_2), widen_float16(x + i_3), widen_float16(x + i_4), widen_float16(x + i_5)}, y + first);
        narrow_float16(widen_float16(x + first) * 2.0f, z + i_2);
        narrow_float16(widen_float16(x + (first + 1)) * 2.0f, z + i_3);
        narrow_float16(widen_float16(x + (first + 2)) * 2.0f, z + i_4);
        narrow_float16(widen_float16(x + (first + 3)) * 2.0f, z + i_5);
      } else {
        for (int i_6 = first; i_6 < n; ++i_6) {
          const int i_7 = i - i_6;
          narrow_float16(widen_float16(x + i_7), y + i_6);
          narrow_float16(widen_float16(x + i_6) * 2.0f, z + i_7);
        }
      }
    }
  }
}
