/* embedded GIVEN ANSWERED COUNT: runs the digits of the demo in the file GIVEN with the module that is in the library.
 */
#include <neo_embedded.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "%s\n", neo_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int64_t dims[4] = {0, 1, 8, 8};
  dims[0] = atoi(argv[3]);
  float* images = malloc((size_t)dims[0] * 64 * sizeof *images);
  FILE* given = fopen(argv[1], "rb");
  if (!given || fread(images, 64 * sizeof *images, (size_t)dims[0], given) != (size_t)dims[0]) return 2;
  fclose(given);

  neo_module* module = NULL;
  if (neo_load_embedded(2, &module)) return fail();
  neo_tensor input = {0};
  input.kind = NEO_TENSOR;
  input.dtype = NEO_FLOAT32;
  input.rank = 4;
  input.dims = dims;
  input.data = images;
  neo_results* results = NULL;
  const neo_tensor* scores = NULL;
  if (neo_call(module, &input, 1, NULL, &results) || neo_result(results, 0, &scores)) return fail();
  FILE* answered = fopen(argv[2], "wb");
  size_t count = 1;
  for (int axis = 0; axis < scores->rank; ++axis) count *= (size_t)scores->dims[axis];
  if (!answered || fwrite(scores->data, sizeof(float), count, answered) != count || fclose(answered)) return 2;
  neo_release_results(results);
  neo_release(module);
  free(images);
  return 0;
}
