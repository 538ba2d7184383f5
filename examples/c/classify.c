/*
 * classify MODULE INPUT: runs a saved module with one input and one output on the raw bytes in the file INPUT and
 * prints the five largest numbers that it gives, one "class score" a line. Sizes that are open are taken to be 1.
 */
#include <neo.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTop = 5, kMaxRank = 8 };

static int complain(const char* text) {
  fprintf(stderr, "classify: %s\n", text);
  return 1;
}

/* The whole file of `bytes` bytes, NULL where it cannot be read or has another size. */
static void* read_file(const char* path, size_t bytes) {
  FILE* file = fopen(path, "rb");
  void* contents = file ? malloc(bytes) : NULL;
  const int is_whole = contents && fread(contents, 1, bytes, file) == bytes && fgetc(file) == EOF;
  if (file) fclose(file);
  if (is_whole) return contents;
  free(contents);
  return NULL;
}

static void print_top(const float* scores, size_t count) {
  size_t best[kTop];
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t place = found < kTop ? found++ : kTop;
    for (; place > 0 && scores[best[place - 1]] < scores[i]; --place) {
      if (place < kTop) best[place] = best[place - 1];
    }
    if (place < kTop) best[place] = i;
  }
  for (size_t i = 0; i < found; ++i) printf("%zu %.6f\n", best[i], scores[best[i]]);
}

static int classify(const neo_module* module, const char* path) {
  const neo_info* info;
  if (neo_input(module, 0, &info)) return complain(neo_last_error());
  if (info->kind != NEO_TENSOR || info->rank < 0 || info->rank > kMaxRank) return complain("the input is no image");
  int64_t dims[kMaxRank];
  size_t bytes = neo_dtype_bytes(info->dtype);
  for (int axis = 0; axis < info->rank; ++axis) {
    dims[axis] = info->dims[axis] < 0 ? 1 : info->dims[axis];
    bytes *= (size_t)dims[axis];
  }
  void* image = read_file(path, bytes);
  if (!image) return complain("the input is no file of the bytes that the module takes");

  const neo_tensor input = {.dtype = info->dtype, .rank = info->rank, .dims = dims, .data = image, .bytes = bytes};
  neo_results* results;
  const int status = neo_call(module, &input, 1, NULL, &results);
  free(image);
  if (status) return complain(neo_last_error());
  const neo_tensor* scores;
  const int is_readable = neo_result(results, 0, &scores) == 0 && scores->dtype == NEO_FLOAT32;
  if (is_readable) print_top(scores->data, scores->bytes / sizeof(float));
  neo_release_results(results);
  return is_readable ? 0 : complain("the output is not of float32");
}

int main(int argc, char** argv) {
  if (argc != 3) return complain("usage: classify MODULE INPUT");
  neo_module* module;
  if (neo_load(argv[1], 0, &module)) return complain(neo_last_error());
  const int status = classify(module, argv[2]);
  neo_release(module);
  return status;
}
