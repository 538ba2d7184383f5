__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_6x2x8(const int m, const int n, const int k, __global const float *restrict a, __global const float *restrict b, __global float *restrict c) {
  const int gx = (int)get_group_id(0);
  const int gy = (int)get_group_id(1);
  const int i = gx * 16;
  const int i_2 = gy * 6 * k;
  const int i_3 = (gy * 6 + 1) * k;
  const int i_4 = (gy * 6 + 2) * k;
  const int i_5 = (gy * 6 + 3) * k;
  const int i_6 = (gy * 6 + 4) * k;
  const int i_7 = (gy * 6 + 5) * k;
  const int i_8 = min(gx * 16 + 16, n);
  if (gy * 6 + 6 <= m && i + 16 <= n) {
    float8 sum0;
    float8 sum1;
    float8 sum2;
    float8 sum3;
    float8 sum4;
    float8 sum5;
    float8 sum6;
    float8 sum7;
    float8 sum8;
    float8 sum9;
    float8 sum10;
    float8 sum11;
    sum0 = (float8)(0.0f);
    sum1 = (float8)(0.0f);
    sum2 = (float8)(0.0f);
    sum3 = (float8)(0.0f);
    sum4 = (float8)(0.0f);
    sum5 = (float8)(0.0f);
    sum6 = (float8)(0.0f);
    sum7 = (float8)(0.0f);
    sum8 = (float8)(0.0f);
    sum9 = (float8)(0.0f);
    sum10 = (float8)(0.0f);
    sum11 = (float8)(0.0f);
    for (int kk = 0; kk < k; ++kk) {
      float8 w0;
      float8 w1;
      w0 = vload8(0, b + (kk * n + i));
      w1 = vload8(0, b + (kk * n + i + 8));
      const float x = a[i_2 + kk];
      sum0 = fma((float8)(x), w0, sum0);
      sum1 = fma((float8)(x), w1, sum1);
      const float x_2 = a[i_3 + kk];
      sum2 = fma((float8)(x_2), w0, sum2);
      sum3 = fma((float8)(x_2), w1, sum3);
      const float x_3 = a[i_4 + kk];
      sum4 = fma((float8)(x_3), w0, sum4);
      sum5 = fma((float8)(x_3), w1, sum5);
      const float x_4 = a[i_5 + kk];
      sum6 = fma((float8)(x_4), w0, sum6);
      sum7 = fma((float8)(x_4), w1, sum7);
      const float x_5 = a[i_6 + kk];
      sum8 = fma((float8)(x_5), w0, sum8);
      sum9 = fma((float8)(x_5), w1, sum9);
      const float x_6 = a[i_7 + kk];
      sum10 = fma((float8)(x_6), w0, sum10);
      sum11 = fma((float8)(x_6), w1, sum11);
    }
    vstore8(sum0, 0, c + (gy * 6 * n + i));
    vstore8(sum1, 0, c + (gy * 6 * n + i + 8));
    vstore8(sum2, 0, c + ((gy * 6 + 1) * n + i));
    vstore8(sum3, 0, c + ((gy * 6 + 1) * n + i + 8));
    vstore8(sum4, 0, c + ((gy * 6 + 2) * n + i));
    vstore8(sum5, 0, c + ((gy * 6 + 2) * n + i + 8));
    vstore8(sum6, 0, c + ((gy * 6 + 3) * n + i));
    vstore8(sum7, 0, c + ((gy * 6 + 3) * n + i + 8));
    vstore8(sum8, 0, c + ((gy * 6 + 4) * n + i));
    vstore8(sum9, 0, c + ((gy * 6 + 4) * n + i + 8));
    vstore8(sum10, 0, c + ((gy * 6 + 5) * n + i));
    vstore8(sum11, 0, c + ((gy * 6 + 5) * n + i + 8));
  } else {
    for (int r = gy * 6; r < min(gy * 6 + 6, m); ++r) {
      const int i_9 = r * k;
      const int i_10 = r * n;
      for (int s = i; s < i_8; ++s) {
        float one;
        one = 0.0f;
        for (int kk_2 = 0; kk_2 < k; ++kk_2) {
          one = fma(a[i_9 + kk_2], b[kk_2 * n + s], one);
        }
        c[i_10 + s] = one;
      }
    }
  }
}
