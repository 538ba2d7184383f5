__kernel __attribute__((reqd_work_group_size(16, 4, 1))) void softmax_subgroup(const int rows, const int width, __global const float *restrict x, __global float *restrict y) {
  __local float exchange_float32[64];
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int i = (width + 15) / 16;
  const int i_2 = ly * 16 + lx;
  const int i_3 = ly * 16 + lx - lx;
  const int row = gx * 4 + ly;
  const int i_4 = row * width;
  float value;
  value = (-INFINITY);
  for (int step = 0; step < i; ++step) {
    if (row < rows && step * 16 + lx < width) {
      value = fmax(value, x[i_4 + (step * 16 + lx)]);
    }
  }
  const float part = value;
  exchange_float32[i_2] = part;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other = exchange_float32[i_3 + (lx ^ 8)];
  const float part_2 = fmax(part, other);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_2;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_2 = exchange_float32[i_3 + (lx ^ 4)];
  const float part_3 = fmax(part_2, other_2);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_3;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_3 = exchange_float32[i_3 + (lx ^ 2)];
  const float part_4 = fmax(part_3, other_3);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_4;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_4 = exchange_float32[i_3 + (lx ^ 1)];
  const float shared_value = fmax(part_4, other_4);
  const float most = shared_value;
  value = 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int step_2 = 0; step_2 < i; ++step_2) {
    if (row < rows && step_2 * 16 + lx < width) {
      value = value + exp(x[i_4 + (step_2 * 16 + lx)] - most);
    }
  }
  const float part_5 = value;
  exchange_float32[i_2] = part_5;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_5 = exchange_float32[i_3 + (lx ^ 8)];
  const float part_6 = part_5 + other_5;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_6;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_6 = exchange_float32[i_3 + (lx ^ 4)];
  const float part_7 = part_6 + other_6;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_7;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_7 = exchange_float32[i_3 + (lx ^ 2)];
  const float part_8 = part_7 + other_7;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  exchange_float32[i_2] = part_8;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const float other_8 = exchange_float32[i_3 + (lx ^ 1)];
  const float shared_value_2 = part_8 + other_8;
  const float sum = shared_value_2;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int step_3 = 0; step_3 < i; ++step_3) {
    const int i_5 = i_4 + (step_3 * 16 + lx);
    if (row < rows && step_3 * 16 + lx < width) {
      y[i_5] = exp(x[i_5] - most) / sum;
    }
  }
}
