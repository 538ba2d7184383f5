#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable
inline int dot4(int a, int b, int c) {
  return arm_dot_acc(as_char4(a), as_char4(b), c);
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void dot_bytes(const int n, __global const int *restrict x, __global const int *restrict z, __global const int *restrict c, __global int *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = gx * 64 + lx;
  if (i < n) {
    y[i] = dot4(x[i], z[i], c[i]);
  }
}
