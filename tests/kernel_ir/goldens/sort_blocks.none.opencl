__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void sort_blocks(const int n, __global const float *restrict x, __global uint *restrict keys, __global int *restrict order) {
  __local uint group_keys[256];
  __local int group_order[256];
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  const int i = thread + 128;
  const int first = block * 256;
  const int i_2 = first + thread;
  const int i_3 = first + i;
  group_keys[thread] = 4294967295u;
  group_order[thread] = i_2;
  if (i_2 < n) {
    group_keys[thread] = x[i_2] == x[i_2] ? ((as_uint(x[i_2] + 0.0f) & 2147483648u) != 0u ? ~as_uint(x[i_2] + 0.0f) : as_uint(x[i_2] + 0.0f) | 2147483648u) : 4294967295u;
  }
  group_keys[i] = 4294967295u;
  group_order[i] = i_3;
  if (i_3 < n) {
    group_keys[i] = x[i_3] == x[i_3] ? ((as_uint(x[i_3] + 0.0f) & 2147483648u) != 0u ? ~as_uint(x[i_3] + 0.0f) : as_uint(x[i_3] + 0.0f) | 2147483648u) : 4294967295u;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int stage = 1; stage < 9; ++stage) {
    const int i_4 = stage - 1;
    const int i_5 = 1 << stage;
    for (int back = 0; back < stage; ++back) {
      const int distance = 1 << (i_4 - back);
      const int low = thread / distance * (distance * 2) + thread % distance;
      const int high = min(low + distance, 255);
      const bool falling = (low & i_5) != 0;
      const uint a = group_keys[low];
      const uint c = group_keys[high];
      const int at_a = group_order[low];
      const int at_c = group_order[high];
      const bool wrong = c < a || (c == a && at_c < at_a);
      if (wrong != falling) {
        group_keys[low] = c;
        group_keys[high] = a;
        group_order[low] = at_c;
        group_order[high] = at_a;
      }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
  }
  if (i_2 < n) {
    keys[i_2] = group_keys[thread];
    order[i_2] = group_order[thread];
  }
  if (i_3 < n) {
    keys[i_3] = group_keys[i];
    order[i_3] = group_order[i];
  }
}
