inline int dot4(int a, int b, int c) {
  return (int)((uint)c + (uint)((char)a * (char)b + (char)(a >> 8) * (char)(b >> 8) + (char)(a >> 16) * (char)(b >> 16) + (char)(a >> 24) * (char)(b >> 24)));
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void dot_bytes(const int n, __global const int *restrict x, __global const int *restrict z, __global const int *restrict c, __global int *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = gx * 64 + lx;
  if (i < n) {
    y[i] = dot4(x[i], z[i], c[i]);
  }
}
