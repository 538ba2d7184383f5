__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void image_blur(const int n, __read_only image1d_buffer_t x, const int x_first, __read_only image1d_buffer_t w, const int w_first, __global float *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = n - 1;
  const int i_2 = gx * 64 + lx;
  if (i_2 < n) {
    float4 sum;
    sum = (float4)(0.0f);
    for (int tap = 0; tap < 3; ++tap) {
      const float4 texel = read_imagef(x, x_first + min(max(i_2 + tap - 1, 0), i));
      sum = fma(texel, read_imagef(w, w_first + tap), sum);
    }
    vstore4(sum * (float4)(read_imagef(w, w_first + 2).s3), 0, y + i_2 * 4);
  }
}
