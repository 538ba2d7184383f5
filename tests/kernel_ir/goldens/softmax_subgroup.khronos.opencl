#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
__kernel __attribute__((reqd_work_group_size(16, 4, 1))) void softmax_subgroup(const int rows, const int width, __global const float *restrict x, __global float *restrict y) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int i = (width + 15) / 16;
  const int row = gx * 4 + ly;
  const int i_2 = row * width;
  float value;
  value = (-INFINITY);
  for (int step = 0; step < i; ++step) {
    if (row < rows && step * 16 + lx < width) {
      value = fmax(value, x[i_2 + (step * 16 + lx)]);
    }
  }
  const float part = value;
  const float other = sub_group_shuffle(part, lx ^ 8);
  const float part_2 = fmax(part, other);
  const float other_2 = sub_group_shuffle(part_2, lx ^ 4);
  const float part_3 = fmax(part_2, other_2);
  const float other_3 = sub_group_shuffle(part_3, lx ^ 2);
  const float part_4 = fmax(part_3, other_3);
  const float other_4 = sub_group_shuffle(part_4, lx ^ 1);
  const float shared_value = fmax(part_4, other_4);
  const float most = shared_value;
  value = 0.0f;
  for (int step_2 = 0; step_2 < i; ++step_2) {
    if (row < rows && step_2 * 16 + lx < width) {
      value = value + exp(x[i_2 + (step_2 * 16 + lx)] - most);
    }
  }
  const float part_5 = value;
  const float other_5 = sub_group_shuffle(part_5, lx ^ 8);
  const float part_6 = part_5 + other_5;
  const float other_6 = sub_group_shuffle(part_6, lx ^ 4);
  const float part_7 = part_6 + other_6;
  const float other_7 = sub_group_shuffle(part_7, lx ^ 2);
  const float part_8 = part_7 + other_7;
  const float other_8 = sub_group_shuffle(part_8, lx ^ 1);
  const float shared_value_2 = part_8 + other_8;
  const float sum = shared_value_2;
  for (int step_3 = 0; step_3 < i; ++step_3) {
    const int i_3 = i_2 + (step_3 * 16 + lx);
    if (row < rows && step_3 * 16 + lx < width) {
      y[i_3] = exp(x[i_3] - most) / sum;
    }
  }
}
