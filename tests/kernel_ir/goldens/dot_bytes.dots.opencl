#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
inline int dot4(int a, int b, int c) {
  return c + dot_4x8packed_ss_int((uint)a, (uint)b);
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void dot_bytes(const int n, __global const int *restrict x, __global const int *restrict z, __global const int *restrict c, __global int *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = gx * 64 + lx;
  if (i < n) {
    y[i] = dot4(x[i], z[i], c[i]);
  }
}
