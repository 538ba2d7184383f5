__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void scan_add(const int n, __global const int *restrict starts, __global const float *restrict totals, __global float *restrict y) {
  __local int first_start[1];
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  const int first = block * 512;
  if (thread == 0) {
    first_start[0] = 512;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int i = 0; i < 8; ++i) {
    const int i_2 = first + (i * 64 + thread);
    if (i_2 < n) {
      if (starts[i_2] != 0) {
        atomic_min(first_start, i * 64 + thread);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int i_3 = 0; i_3 < 8; ++i_3) {
    const int i_4 = first + (i_3 * 64 + thread);
    if (i_4 < n && i_3 * 64 + thread < first_start[0]) {
      y[i_4] = y[i_4] + totals[block];
    }
  }
}
