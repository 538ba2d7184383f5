#include <math.h>
#include <string.h>
void softmax_subgroup(void *const *args) {
  const int rows = *(const int *)args[0];
  const int width = *(const int *)args[1];
  const float *x = args[2];
  float *y = args[3];
  for (int gx = 0; gx < (rows + 3) / 4; ++gx) {
    float exchange_float32[64];
    memset(exchange_float32, 0xff, sizeof exchange_float32);
    int i[64];
    int i_2[64];
    int i_3[64];
    int row[64];
    int i_4[64];
    float value[64];
    float part[64];
    float part_2[64];
    float part_3[64];
    float part_4[64];
    float most[64];
    float part_5[64];
    float part_6[64];
    float part_7[64];
    float part_8[64];
    float sum[64];
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const int ly = t / 16;
      i[t] = (width + 15) / 16;
      i_2[t] = ly * 16 + lx;
      i_3[t] = ly * 16 + lx - lx;
      row[t] = gx * 4 + ly;
      i_4[t] = row[t] * width;
      value[t] = (-INFINITY);
      for (int step = 0; step < i[t]; ++step) {
        if (row[t] < rows && step * 16 + lx < width) {
          value[t] = fmaxf(value[t], x[i_4[t] + (step * 16 + lx)]);
        }
      }
      part[t] = value[t];
      exchange_float32[i_2[t]] = part[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other = exchange_float32[i_3[t] + (lx ^ 8)];
      part_2[t] = fmaxf(part[t], other);
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_2[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_2 = exchange_float32[i_3[t] + (lx ^ 4)];
      part_3[t] = fmaxf(part_2[t], other_2);
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_3[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_3 = exchange_float32[i_3[t] + (lx ^ 2)];
      part_4[t] = fmaxf(part_3[t], other_3);
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_4[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_4 = exchange_float32[i_3[t] + (lx ^ 1)];
      const float shared_value = fmaxf(part_4[t], other_4);
      most[t] = shared_value;
      value[t] = 0.0f;
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      for (int step_2 = 0; step_2 < i[t]; ++step_2) {
        if (row[t] < rows && step_2 * 16 + lx < width) {
          value[t] = value[t] + expf(x[i_4[t] + (step_2 * 16 + lx)] - most[t]);
        }
      }
      part_5[t] = value[t];
      exchange_float32[i_2[t]] = part_5[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_5 = exchange_float32[i_3[t] + (lx ^ 8)];
      part_6[t] = part_5[t] + other_5;
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_6[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_6 = exchange_float32[i_3[t] + (lx ^ 4)];
      part_7[t] = part_6[t] + other_6;
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_7[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_7 = exchange_float32[i_3[t] + (lx ^ 2)];
      part_8[t] = part_7[t] + other_7;
    }
    for (int t = 0; t < 64; ++t) {
      exchange_float32[i_2[t]] = part_8[t];
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      const float other_8 = exchange_float32[i_3[t] + (lx ^ 1)];
      const float shared_value_2 = part_8[t] + other_8;
      sum[t] = shared_value_2;
    }
    for (int t = 0; t < 64; ++t) {
      const int lx = t % 16;
      for (int step_3 = 0; step_3 < i[t]; ++step_3) {
        const int i_5 = i_4[t] + (step_3 * 16 + lx);
        if (row[t] < rows && step_3 * 16 + lx < width) {
          y[i_5] = expf(x[i_5] - most[t]) / sum[t];
        }
      }
    }
  }
}
