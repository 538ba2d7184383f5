/* Runs the module on inputs of zeros, and prints what it takes and gives. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "neo.h"

static int fail(void) {
  fprintf(stderr, "%s\n", neo_last_error());
  return 1;
}

int main(int argc, char** argv) {
  neo_module* module = NULL;
  if (neo_load(argc > 1 ? argv[1] : "model.neo", 0, &module)) return fail();

  size_t count = 0;
  neo_input_count(module, &count);
  neo_tensor* inputs = calloc(count + 1, sizeof *inputs);
  for (size_t i = 0; i < count; ++i) {
    const neo_info* info = NULL;
    neo_input(module, i, &info);
    size_t bytes = neo_dtype_bytes(info->dtype);
    for (int axis = 0; axis < info->rank; ++axis) bytes *= (size_t)info->hints[axis];
    inputs[i].kind = info->kind;
    inputs[i].dtype = info->dtype;
    inputs[i].rank = info->rank;
    inputs[i].dims = info->hints;
    inputs[i].data = calloc(bytes + 1, 1);
    printf("%s: %s\n", info->name, info->type);
  }

  neo_results* results = NULL;
  if (neo_call(module, inputs, count, NULL, &results)) return fail();
  neo_result_count(results, &count);
  for (size_t i = 0; i < count; ++i) {
    const neo_info* info = NULL;
    const neo_tensor* y = NULL;
    neo_output(module, i, &info);
    neo_result(results, i, &y);
    printf("%s: %s of", info->name, neo_dtype_name(y->dtype));
    for (int axis = 0; axis < y->rank; ++axis) printf(" %" PRId64, y->dims[axis]);
    printf("\n");
  }
  neo_release_results(results);
  neo_release(module);
  return 0;
}
