/*
 * neo.h: load and run saved modules (.neo) from C. docs/deploy.md is the guide.
 *
 * Every function that can fail returns 0, or -1 and leaves a line for neo_last_error(); on -1 nothing is written to
 * where results go. No function throws, exits, prints, installs a signal handler, or opens another file than the one
 * that it is given (beside what /proc and /sys say of the processors). Every function may be called from any thread at
 * any time, also on the same handle.
 *
 * A handle is given out by a function with a result `T** name` and taken back by the function named release. A handle
 * that was released or never given out, and NULL, are refused with -1; releasing NULL does nothing. What was running on
 * a handle when it was released ends as if it had not been.
 */
#ifndef NEO_H
#define NEO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NEO_API __attribute__((visibility("default")))
#else
#define NEO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ---------------------------------------------------------------------------------------------------- */

#define NEO_VERSION_MAJOR 0
#define NEO_VERSION_MINOR 1
#define NEO_VERSION_PATCH 0
#define NEO_VERSION "0.1.0"

/* The number in libneo.so.N. It grows when a program that was compiled with an older header would break. */
#define NEO_ABI_VERSION 0

/* Those of the library that is linked, which may be newer than the header. */
NEO_API const char* neo_version(void);
NEO_API int neo_abi_version(void);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* What went wrong, from the caller's side: the classes of neo.Error. */
typedef enum neo_error_kind {
  NEO_ERROR_NONE = 0,
  NEO_ERROR_MODEL = 1,       /* the file is not a whole saved module, or an argument is malformed */
  NEO_ERROR_SHAPE = 2,       /* a shape or a size does not fit */
  NEO_ERROR_DTYPE = 3,       /* a dtype or a kind of value does not fit */
  NEO_ERROR_UNSUPPORTED = 4, /* of another format or instruction set, or of routines that this library lacks */
  NEO_ERROR_RESOURCE = 5,    /* a file cannot be read */
  NEO_ERROR_MEMORY = 6,      /* there is no memory */
  NEO_ERROR_CANCELLED = 7,   /* the call was cancelled */
  NEO_ERROR_INTERNAL = 8,    /* a bug in neo */
  NEO_ERROR_TIME = 9         /* a limit on the time was reached */
} neo_error_kind;

/* Why the last function that failed on this thread did, in one line; "" before the first. The text stays until another
 * function fails on this thread. */
NEO_API const char* neo_last_error(void);
NEO_API neo_error_kind neo_last_error_kind(void);

/* ---- Values ----------------------------------------------------------------------------------------------------- */

/* Element types. An element of a type below one byte takes a byte. */
typedef enum neo_dtype {
  NEO_UNDEFINED = 0,
  NEO_FLOAT64 = 1,
  NEO_FLOAT32 = 2,
  NEO_FLOAT16 = 3,
  NEO_BFLOAT16 = 4,
  NEO_FLOAT8_E4M3FN = 5,
  NEO_FLOAT8_E4M3FNUZ = 6,
  NEO_FLOAT8_E5M2 = 7,
  NEO_FLOAT8_E5M2FNUZ = 8,
  NEO_FLOAT8_E8M0 = 9,
  NEO_FLOAT4_E2M1 = 10,
  NEO_INT64 = 11,
  NEO_INT32 = 12,
  NEO_INT16 = 13,
  NEO_INT8 = 14,
  NEO_INT4 = 15,
  NEO_INT2 = 16,
  NEO_UINT64 = 17,
  NEO_UINT32 = 18,
  NEO_UINT16 = 19,
  NEO_UINT8 = 20,
  NEO_UINT4 = 21,
  NEO_UINT2 = 22,
  NEO_BOOL = 23,   /* a byte, 0 or 1 */
  NEO_STRING = 24, /* a neo_string */
  NEO_COMPLEX64 = 25,
  NEO_COMPLEX128 = 26
} neo_dtype;

/* NumPy's name, "float32"; "undefined" for a number that is none of the above. */
NEO_API const char* neo_dtype_name(neo_dtype dtype);
/* Bytes that one element takes; 0 for NEO_UNDEFINED and for a number that is none of the above. */
NEO_API size_t neo_dtype_bytes(neo_dtype dtype);

/* One element of a string tensor: bytes in UTF-8, which no zero need follow. */
typedef struct neo_string {
  const char* data;
  size_t size;
} neo_string;

typedef enum neo_kind {
  NEO_TENSOR = 0,
  NEO_SEQUENCE = 1, /* of values */
  NEO_OPTIONAL = 2, /* of types only: a value of the element's type, or NEO_NONE */
  NEO_NONE = 3,     /* of values only: an optional that is empty */
  NEO_MAP = 4       /* from keys to scalars: two items, the tensors of keys and of values, of one axis and one size */
} neo_kind;

/* A value that is read: an input, or a result. A tensor needs dtype, rank, dims and data:
 *
 *   int64_t dims[] = {1, 3, 224, 224};
 *   neo_tensor image = {.dtype = NEO_FLOAT32, .rank = 4, .dims = dims, .data = pixels};
 */
typedef struct neo_tensor {
  neo_kind kind; /* NEO_TENSOR, NEO_SEQUENCE, NEO_MAP or NEO_NONE */
  neo_dtype dtype;
  int rank;
  const int64_t* dims;
  const int64_t* strides; /* bytes from one index to the next, by axis, also 0 or negative; NULL: dense, row-major */
  const void* data;       /* of the element at index 0, 0, ... */
  size_t bytes;           /* how many there are at `data`, checked against the shape; 0: not said. Dense only. */
  const struct neo_tensor* items; /* NEO_SEQUENCE, NEO_MAP */
  size_t item_count;
} neo_tensor;

/* Memory of the caller that an output is written to, dense and row-major:
 *
 *   float scores[1000];
 *   neo_buffer out = {.dtype = NEO_FLOAT32, .data = scores, .bytes = sizeof scores};
 */
typedef struct neo_buffer {
  neo_dtype dtype; /* the output's, not NEO_STRING */
  void* data;
  size_t bytes;   /* how many fit */
  size_t written; /* set by a call: how many the output has */
} neo_buffer;

/* ---- Modules ---------------------------------------------------------------------------------------------------- */

typedef struct neo_module neo_module;

/* Loads a file that Module.save of Python or `neo compile -o` wrote. Nothing in the file is trusted. It is mapped, and
 * weights are read when they are first used: it must not be changed in place while the module lives (writing a new file
 * and renaming it is safe). Of a file of several variants the first of those for the best instruction set is taken: one
 * range of sizes. Save a range that fits every call for a program in C.
 * threads: that a call may use, at least 1; 0: NEO_NUM_THREADS, or the cores that this process may really use, and as
 * many executors as compiling found best. */
NEO_API int neo_load(const char* path, int threads, neo_module** module);
/* The same from memory, which is copied. */
NEO_API int neo_load_bytes(const void* data, size_t bytes, int threads, neo_module** module);

/* What a file that nobody trusts may take; 0: no limit of ours. docs/untrusted.md says what counts. */
typedef struct neo_limits {
  uint64_t bytes;  /* of the file */
  uint64_t memory; /* held at once, by loading and then by each call; 0: what the system has free */
  double seconds;  /* on the clock, of loading and then of each call: NEO_ERROR_TIME */
} neo_limits;

/* neo_load and neo_load_bytes within limits; NULL: without. */
NEO_API int neo_load_within(const char* path, int threads, const neo_limits* limits, neo_module** module);
NEO_API int neo_load_bytes_within(const void* data, size_t bytes, int threads, const neo_limits* limits,
                                  neo_module** module);

/* The same module, weights and limits shared, on another number of threads. It has the same answers to the bit. */
NEO_API int neo_with_threads(const neo_module* module, int threads, neo_module** other);
/* The same on so many executors, which run parts of the model beside each other, of so many threads each. */
NEO_API int neo_with_executors(const neo_module* module, int executors, int threads, neo_module** other);
NEO_API int neo_release(neo_module* module);

/* That a call may use, of all executors; how many executors there are. */
NEO_API int neo_threads(const neo_module* module, int* threads);
NEO_API int neo_executors(const neo_module* module, int* executors);

/* What a module takes or gives. Owned by the module, as is all that it points to. */
typedef struct neo_info {
  const char* name;           /* the model's own */
  neo_kind kind;              /* NEO_TENSOR, NEO_SEQUENCE, NEO_OPTIONAL or NEO_MAP */
  neo_dtype dtype;            /* of the innermost element; of a map's values */
  int rank;                   /* -1: open; so is that of what is no tensor */
  const int64_t* dims;        /* by axis, -1: symbolic */
  const char* const* symbols; /* by axis, NULL: fixed; else the size as text, "N" or "2*N + 1" */
  const int64_t* hints;       /* by axis: the size that compiling assumed */
  const char* type;           /* all of that as text: "float32[N,3,224,224]", "seq(map(int64,float32[]))" */
  neo_dtype key;              /* of the keys of a map, or of maps in a sequence; else NEO_UNDEFINED */
} neo_info;

NEO_API int neo_input_count(const neo_module* module, size_t* count);
NEO_API int neo_output_count(const neo_module* module, size_t* count);
/* In the model's order. `info` stays until the module is released. */
NEO_API int neo_input(const neo_module* module, size_t index, const neo_info** info);
NEO_API int neo_output(const neo_module* module, size_t index, const neo_info** info);
/* By name. */
NEO_API int neo_find_input(const neo_module* module, const char* name, size_t* index);
NEO_API int neo_find_output(const neo_module* module, const char* name, size_t* index);

/* What the saver wrote beside the plan, by key: "neo.version", "neo.model", "neo.model_sha256"; NULL where there is
 * none. Owned by the module. */
NEO_API int neo_note(const neo_module* module, const char* key, const char** text);

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* Stops calls from another thread. */
typedef struct neo_token neo_token;

NEO_API int neo_new_token(neo_token** token);
/* Calls that run with this token, and those that come later, end with NEO_ERROR_CANCELLED as soon as the step that is
 * running is done. */
NEO_API int neo_cancel(const neo_token* token);
NEO_API int neo_release_token(neo_token* token);

/* Runs a module. Inputs in its order; they must stay as they are until the call returns. Outputs in its order, each
 * into the caller's memory; one whose size is not known before is better asked for by neo_call.
 * token: NULL, or what may stop this call. */
NEO_API int neo_run(const neo_module* module, const neo_tensor* inputs, size_t input_count, neo_buffer* outputs,
                    size_t output_count, const neo_token* token);

/* What a call gave. */
typedef struct neo_results neo_results;

/* The same; outputs belong to `results`, which may outlive the module. */
NEO_API int neo_call(const neo_module* module, const neo_tensor* inputs, size_t input_count, const neo_token* token,
                     neo_results** results);
NEO_API int neo_result_count(const neo_results* results, size_t* count);
/* In the module's order: dense, row-major, to be read only. `result` and its memory stay until the results are
 * released. */
NEO_API int neo_result(const neo_results* results, size_t index, const neo_tensor** result);
NEO_API int neo_release_results(neo_results* results);

#ifdef __cplusplus
}
#endif

#endif
