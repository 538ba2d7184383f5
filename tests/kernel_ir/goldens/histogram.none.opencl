inline float atomic_add_float32__global(volatile __global float *p, float v) {
  uint seen, wanted;
  do {
    seen = as_uint(*p);
    wanted = as_uint(as_float(seen) + v);
  } while (atomic_cmpxchg((volatile __global uint *)p, seen, wanted) != seen);
  return as_float(seen);
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void histogram(const int n, __global const uchar *restrict x, __global int *restrict counts, __global float *restrict sum) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = gx * 64 + lx;
  if (i < n) {
    atomic_add(counts + (int)x[i], 1);
    atomic_add_float32__global(sum, (float)x[i]);
  }
}
