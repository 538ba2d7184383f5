__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void mirror_vector_float16(const int n, __global const half *restrict x, __global half *restrict y, __global half *restrict z) {
  const int gx = (int)get_group_id(0);
  const int i = n - 1;
  const int first = gx * 4;
  const int i_2 = i - first;
  const int i_3 = i - (first + 1);
  const int i_4 = i - (first + 2);
  const int i_5 = i - (first + 3);
  if (first + 4 <= n) {
    vstore_half4_rte((float4)(vload_half(i_2, x), vload_half(i_3, x), vload_half(i_4, x), vload_half(i_5, x)), 0, y + first);
    vstore_half_rte(vload_half(first, x) * 2.0f, i_2, z);
    vstore_half_rte(vload_half(first + 1, x) * 2.0f, i_3, z);
    vstore_half_rte(vload_half(first + 2, x) * 2.0f, i_4, z);
    vstore_half_rte(vload_half(first + 3, x) * 2.0f, i_5, z);
  } else {
    for (int i_6 = first; i_6 < n; ++i_6) {
      const int i_7 = i - i_6;
      vstore_half_rte(vload_half(i_7, x), i_6, y);
      vstore_half_rte(vload_half(i_6, x) * 2.0f, i_7, z);
    }
  }
}
