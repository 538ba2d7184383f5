#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void scale_codes(const int n, const float scale, __global const uchar *restrict x, __global const char *restrict z, __global float *restrict y, __global uchar *restrict low) {
  const int gx = (int)get_group_id(0);
  const int lx = (int)get_local_id(0);
  const int i = gx * 64 + lx;
  const int i_2 = i * 4;
  if (i < n) {
    const int4 sum = convert_int4(vload4(0, x + i_2)) + convert_int4(vload4(0, z + i_2));
    vstore4(convert_float4(sum) * (float4)(scale) + (float4)(1.0f), 0, y + i_2);
    vstore4(convert_uchar4(sum & (int4)(255)), 0, low + i_2);
  }
}
