#include <math.h>
#include <string.h>
typedef float float32x4 __attribute__((vector_size(16)));
static inline int min_int32(int a, int b) {
  return a < b ? a : b;
}
static inline float32x4 splat_float32x4(float a) {
  float32x4 r;
  for (int i = 0; i < 4; ++i) r[i] = a;
  return r;
}
static inline float to_tf32(float a) {
  unsigned int u;
  memcpy(&u, &a, sizeof u);
  if ((u & 0x7f800000u) != 0x7f800000u) u = (u + 0x1000u) & 0xffffe000u;
  memcpy(&a, &u, sizeof a);
  return a;
}
void gemm_matrices(void *const *args) {
  const int m = *(const int *)args[0];
  const int n = *(const int *)args[1];
  const int k = *(const int *)args[2];
  const float *a = args[3];
  const float *b = args[4];
  float *c = args[5];
  for (int gy = 0; gy < (m + 15) / 16; ++gy) {
    for (int gx = 0; gx < (n + 15) / 16; ++gx) {
      float matrix_a[256];
      memset(matrix_a, 0xff, sizeof matrix_a);
      float matrix_b[128];
      memset(matrix_b, 0xff, sizeof matrix_b);
      int i[64];
      int i_2[64];
      int i_3[64];
      int i_4[64];
      int i_5[64];
      int i_6[64];
      int i_7[64];
      int i_8[64];
      int i_9[64];
      int i_10[64];
      int i_11[64];
      int i_12[64];
      int i_13[64];
      int i_14[64];
      int i_15[64];
      int i_16[64];
      int i_17[64];
      int i_18[64];
      int i_19[64];
      int i_20[64];
      int i_21[64];
      int i_22[64];
      int i_23[64];
      int i_24[64];
      int i_25[64];
      int i_26[64];
      int i_27[64];
      int i_28[64];
      int i_29[64];
      int i_30[64];
      int i_31[64];
      int i_32[64];
      int i_33[64];
      int i_34[64];
      int i_35[64];
      int i_36[64];
      int i_37[64];
      int i_38[64];
      int i_39[64];
      int i_40[64];
      int i_41[64];
      int i_42[64];
      int i_43[64];
      int i_44[64];
      int i_45[64];
      int quarter[64];
      int i_46[64];
      int i_47[64];
      float32x4 sum[64];
      for (int t = 0; t < 64; ++t) {
        const int lx = t % 32;
        const int ly = t / 32;
        i[t] = ly * 32 + lx;
        const int i_48 = m - 1;
        i_2[t] = k - 1;
        i_3[t] = ly * 32 + lx + 64;
        i_4[t] = ly * 32 + lx + 128;
        i_5[t] = ly * 32 + lx + 192;
        const int i_49 = n - 1;
        i_6[t] = ly * 32 + lx - lx + lx / 4 * 4 + 131;
        i_7[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 67;
        i_8[t] = ly * 32 + lx - lx + lx / 4 * 4 + 130;
        i_9[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 66;
        i_10[t] = ly * 32 + lx - lx + lx / 4 * 4 + 129;
        i_11[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 65;
        i_12[t] = ly * 32 + lx - lx + lx / 4 * 4 + 128;
        i_13[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 64;
        i_14[t] = ly * 32 + lx - lx + lx / 4 * 4 + 3;
        i_15[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 3;
        i_16[t] = ly * 32 + lx - lx + lx / 4 * 4 + 2;
        i_17[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 2;
        i_18[t] = ly * 32 + lx - lx + lx / 4 * 4 + 1;
        i_19[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4 + 1;
        i_20[t] = ly * 32 + lx - lx + lx / 4 * 4;
        i_21[t] = ly * 32 + lx - lx + lx % 4 * 2 * 4;
        i_22[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 67;
        i_23[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 66;
        i_24[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 65;
        i_25[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 64;
        i_26[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 3;
        i_27[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 2;
        i_28[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4 + 1;
        i_29[t] = ly * 32 + lx - lx + (lx % 4 * 2 + 1) * 4;
        i_30[t] = ly * 32 + lx - lx + lx / 4 * 4 + 195;
        i_31[t] = ly * 32 + lx - lx + lx / 4 * 4 + 194;
        i_32[t] = ly * 32 + lx - lx + lx / 4 * 4 + 193;
        i_33[t] = ly * 32 + lx - lx + lx / 4 * 4 + 192;
        i_34[t] = ly * 32 + lx - lx + lx / 4 * 4 + 67;
        i_35[t] = ly * 32 + lx - lx + lx / 4 * 4 + 66;
        i_36[t] = ly * 32 + lx - lx + lx / 4 * 4 + 65;
        i_37[t] = ly * 32 + lx - lx + lx / 4 * 4 + 64;
        const int row = gy * 16;
        const int column = gx * 16 + ly * 8;
        const int eighth = lx / 4;
        i_38[t] = row + eighth;
        i_39[t] = min_int32(row + eighth, i_48) * k;
        i_40[t] = row + eighth + 8;
        i_41[t] = min_int32(row + eighth + 8, i_48) * k;
        i_42[t] = column + eighth;
        i_43[t] = min_int32(column + eighth, i_49);
        i_44[t] = (row + eighth) * n;
        i_45[t] = (row + eighth + 8) * n;
        quarter[t] = lx % 4;
        i_46[t] = column + quarter[t] * 2;
        i_47[t] = column + quarter[t] * 2 + 1;
        sum[t] = splat_float32x4(0.0f);
      }
      for (int step = 0; step < (k + 7) / 8; ++step) {
        float32x4 product[64];
        for (int t = 0; t < 64; ++t) {
          const int i_50 = step * 8 + quarter[t];
          const int i_51 = step * 8 + quarter[t] + 4;
          matrix_a[i[t]] = to_tf32(to_tf32(i_38[t] < m && i_50 < k ? a[i_39[t] + min_int32(i_50, i_2[t])] : 0.0f));
          matrix_a[i_3[t]] = to_tf32(to_tf32(i_40[t] < m && i_50 < k ? a[i_41[t] + min_int32(i_50, i_2[t])] : 0.0f));
          matrix_a[i_4[t]] = to_tf32(to_tf32(i_38[t] < m && i_51 < k ? a[i_39[t] + min_int32(i_51, i_2[t])] : 0.0f));
          matrix_a[i_5[t]] = to_tf32(to_tf32(i_40[t] < m && i_51 < k ? a[i_41[t] + min_int32(i_51, i_2[t])] : 0.0f));
          matrix_b[i[t]] = to_tf32(to_tf32(i_50 < k && i_42[t] < n ? b[min_int32(i_50, i_2[t]) * n + i_43[t]] : 0.0f));
          matrix_b[i_3[t]] = to_tf32(to_tf32(i_51 < k && i_42[t] < n ? b[min_int32(i_51, i_2[t]) * n + i_43[t]] : 0.0f));
        }
        for (int t = 0; t < 64; ++t) {
          const float part = fmaf(matrix_a[i_6[t]], matrix_b[i_7[t]], fmaf(matrix_a[i_8[t]], matrix_b[i_9[t]], fmaf(matrix_a[i_10[t]], matrix_b[i_11[t]], fmaf(matrix_a[i_12[t]], matrix_b[i_13[t]], fmaf(matrix_a[i_14[t]], matrix_b[i_15[t]], fmaf(matrix_a[i_16[t]], matrix_b[i_17[t]], fmaf(matrix_a[i_18[t]], matrix_b[i_19[t]], fmaf(matrix_a[i_20[t]], matrix_b[i_21[t]], sum[t][0]))))))));
          const float part_2 = fmaf(matrix_a[i_6[t]], matrix_b[i_22[t]], fmaf(matrix_a[i_8[t]], matrix_b[i_23[t]], fmaf(matrix_a[i_10[t]], matrix_b[i_24[t]], fmaf(matrix_a[i_12[t]], matrix_b[i_25[t]], fmaf(matrix_a[i_14[t]], matrix_b[i_26[t]], fmaf(matrix_a[i_16[t]], matrix_b[i_27[t]], fmaf(matrix_a[i_18[t]], matrix_b[i_28[t]], fmaf(matrix_a[i_20[t]], matrix_b[i_29[t]], sum[t][1]))))))));
          const float part_3 = fmaf(matrix_a[i_30[t]], matrix_b[i_7[t]], fmaf(matrix_a[i_31[t]], matrix_b[i_9[t]], fmaf(matrix_a[i_32[t]], matrix_b[i_11[t]], fmaf(matrix_a[i_33[t]], matrix_b[i_13[t]], fmaf(matrix_a[i_34[t]], matrix_b[i_15[t]], fmaf(matrix_a[i_35[t]], matrix_b[i_17[t]], fmaf(matrix_a[i_36[t]], matrix_b[i_19[t]], fmaf(matrix_a[i_37[t]], matrix_b[i_21[t]], sum[t][2]))))))));
          const float part_4 = fmaf(matrix_a[i_30[t]], matrix_b[i_22[t]], fmaf(matrix_a[i_31[t]], matrix_b[i_23[t]], fmaf(matrix_a[i_32[t]], matrix_b[i_24[t]], fmaf(matrix_a[i_33[t]], matrix_b[i_25[t]], fmaf(matrix_a[i_34[t]], matrix_b[i_26[t]], fmaf(matrix_a[i_35[t]], matrix_b[i_27[t]], fmaf(matrix_a[i_36[t]], matrix_b[i_28[t]], fmaf(matrix_a[i_37[t]], matrix_b[i_29[t]], sum[t][3]))))))));
          product[t] = (float32x4){part, part_2, part_3, part_4};
        }
        for (int t = 0; t < 64; ++t) {
          sum[t] = product[t];
        }
      }
      for (int t = 0; t < 64; ++t) {
        if (i_38[t] < m && i_46[t] < n) {
          c[i_44[t] + i_46[t]] = sum[t][0];
        }
        if (i_38[t] < m && i_47[t] < n) {
          c[i_44[t] + i_47[t]] = sum[t][1];
        }
        if (i_40[t] < m && i_46[t] < n) {
          c[i_45[t] + i_46[t]] = sum[t][2];
        }
        if (i_40[t] < m && i_47[t] < n) {
          c[i_45[t] + i_47[t]] = sum[t][3];
        }
      }
    }
  }
}
