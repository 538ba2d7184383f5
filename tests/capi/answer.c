/*
 * answer THREADS (MODULE GIVEN ANSWERED)...: runs saved modules on the cases in the files GIVEN and writes what they
 * give to the files ANSWERED, both as tests/capi/values.py has them. Every case is run by neo_call; where all outputs
 * are tensors of numbers also by neo_run, which must give the same bytes.
 */
#include <neo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, neo_last_error());
  exit(1);
}

static void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes ? bytes : 1);
  if (!memory) fail("no memory");
  return memory;
}

/* ---- Reading: every number is an int64, all else is padded to multiples of 8 bytes. ---- */

static const char* position;

static int64_t read_number(void) {
  int64_t number;
  memcpy(&number, position, sizeof number);
  position += sizeof number;
  return number;
}

static const char* read_bytes(size_t bytes) {
  const char* start = position;
  position += (bytes + 7) / 8 * 8;
  return start;
}

static neo_tensor read_value(void) {
  neo_tensor value;
  memset(&value, 0, sizeof value);
  value.kind = (neo_kind)read_number();
  if (value.kind == NEO_SEQUENCE || value.kind == NEO_MAP) {
    value.item_count = (size_t)read_number();
    neo_tensor* items = allocate(value.item_count * sizeof(neo_tensor));
    for (size_t i = 0; i < value.item_count; ++i) items[i] = read_value();
    value.items = items;
  } else if (value.kind == NEO_TENSOR) {
    value.dtype = (neo_dtype)read_number();
    value.rank = (int)read_number();
    value.dims = (const int64_t*)read_bytes((size_t)value.rank * sizeof(int64_t));
    const size_t count = (size_t)read_number();
    value.bytes = count * neo_dtype_bytes(value.dtype);
    if (value.dtype == NEO_STRING) {
      neo_string* strings = allocate(value.bytes);
      for (size_t i = 0; i < count; ++i) {
        strings[i].size = (size_t)read_number();
        strings[i].data = read_bytes(strings[i].size);
      }
      value.data = strings;
    } else {
      value.data = read_bytes(value.bytes);
    }
  }
  return value;
}

static void free_value(const neo_tensor* value) {
  if (value->kind == NEO_TENSOR && value->dtype == NEO_STRING) free((void*)value->data);
  for (size_t i = 0; i < value->item_count; ++i) free_value(&value->items[i]);
  free((void*)value->items);
}

/* ---- Writing ---- */

static void write_bytes(FILE* file, const void* data, size_t bytes) {
  static const char zeros[8];
  if (bytes && fwrite(data, 1, bytes, file) != bytes) fail("the answers cannot be written");
  fwrite(zeros, 1, (8 - bytes % 8) % 8, file);
}

static void write_number(FILE* file, int64_t number) {
  write_bytes(file, &number, sizeof number);
}

static void write_value(FILE* file, const neo_tensor* value) {
  write_number(file, value->kind);
  if (value->kind == NEO_SEQUENCE || value->kind == NEO_MAP) {
    write_number(file, (int64_t)value->item_count);
    for (size_t i = 0; i < value->item_count; ++i) write_value(file, &value->items[i]);
  } else if (value->kind == NEO_TENSOR) {
    const size_t count = value->bytes / neo_dtype_bytes(value->dtype);
    write_number(file, value->dtype);
    write_number(file, value->rank);
    write_bytes(file, value->dims, (size_t)value->rank * sizeof(int64_t));
    write_number(file, (int64_t)count);
    if (value->dtype == NEO_STRING) {
      const neo_string* strings = value->data;
      for (size_t i = 0; i < count; ++i) {
        write_number(file, (int64_t)strings[i].size);
        write_bytes(file, strings[i].data, strings[i].size);
      }
    } else {
      write_bytes(file, value->data, value->bytes);
    }
  }
}

/* ---- Running ---- */

static int goes_into_buffers(const neo_results* results, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const neo_tensor* result;
    if (neo_result(results, i, &result)) fail("neo_result");
    if (result->kind != NEO_TENSOR || result->dtype == NEO_STRING) return 0;
  }
  return 1;
}

static void check_buffers(const neo_module* module, const neo_tensor* inputs, size_t input_count,
                          const neo_results* results, size_t count) {
  neo_buffer* buffers = allocate(count * sizeof(neo_buffer));
  for (size_t i = 0; i < count; ++i) {
    const neo_tensor* result;
    neo_result(results, i, &result);
    buffers[i].dtype = result->dtype;
    buffers[i].bytes = result->bytes;
    buffers[i].data = allocate(result->bytes);
  }
  if (neo_run(module, inputs, input_count, buffers, count, NULL)) fail("neo_run");
  for (size_t i = 0; i < count; ++i) {
    const neo_tensor* result;
    neo_result(results, i, &result);
    if (buffers[i].written != result->bytes || memcmp(buffers[i].data, result->data, result->bytes) != 0)
      fail("neo_run and neo_call differ");
    free(buffers[i].data);
  }
  free(buffers);
}

static void answer(const neo_module* module, FILE* file) {
  const size_t input_count = (size_t)read_number();
  neo_tensor* inputs = allocate(input_count * sizeof(neo_tensor));
  for (size_t i = 0; i < input_count; ++i) inputs[i] = read_value();
  neo_results* results;
  if (neo_call(module, inputs, input_count, NULL, &results)) fail("neo_call");
  size_t count;
  if (neo_result_count(results, &count)) fail("neo_result_count");
  if (goes_into_buffers(results, count)) check_buffers(module, inputs, input_count, results, count);
  for (size_t i = 0; i < input_count; ++i) free_value(&inputs[i]);
  free(inputs);
  write_number(file, (int64_t)count);
  for (size_t i = 0; i < count; ++i) {
    const neo_tensor* result;
    if (neo_result(results, i, &result)) fail("neo_result");
    write_value(file, result);
  }
  if (neo_release_results(results)) fail("neo_release_results");
}

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path);
  const size_t bytes = (size_t)ftell(file);
  char* contents = allocate(bytes);
  rewind(file);
  if (fread(contents, 1, bytes, file) != bytes) fail(path);
  fclose(file);
  return contents;
}

static void answer_all(const char* path, int threads, const char* given_path, const char* answered_path) {
  neo_module* module;
  if (neo_load(path, threads, &module)) fail("neo_load");
  char* given = read_file(given_path);
  FILE* file = fopen(answered_path, "wb");
  if (!file) fail(answered_path);
  position = given;
  const int64_t cases = read_number();
  write_number(file, cases);
  for (int64_t i = 0; i < cases; ++i) answer(module, file);
  if (fclose(file)) fail(answered_path);
  if (neo_release(module)) fail("neo_release");
  free(given);
}

int main(int argc, char** argv) {
  if (argc < 2 || argc % 3 != 2) return 2;
  for (int i = 2; i < argc; i += 3) answer_all(argv[i], atoi(argv[1]), argv[i + 1], argv[i + 2]);
  return 0;
}
