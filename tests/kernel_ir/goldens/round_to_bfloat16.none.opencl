inline void narrow_bfloat16x4(float4 a, __global ushort *p) {
  uint4 u = as_uint4(a);
  u = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  vstore4(convert_ushort4(select((uint4)(0x7fc0u), u, a == a)), 0, p);
}
inline void narrow_bfloat16(float a, __global ushort *p) {
  uint u = as_uint(a);
  u = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  *p = (ushort)(a == a ? u : 0x7fc0u);
}
__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void round_to_bfloat16(const int n, __global const float *restrict x, __global ushort *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = (gx * 16 + lx) * 4;
  if (i + 4 <= n) {
    narrow_bfloat16x4(vload4(0, x + i), y + i);
  } else {
    for (int j = i; j < n; ++j) {
      narrow_bfloat16(x[j], y + j);
    }
  }
}
