/*
 * threads MODULE: one module of the demo's network called from many threads at once, by neo_run and neo_call, on one
 * and on two threads each, while others load, release and cancel. Prints "<calls> the same", or what differed.
 */
#include <neo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kThreads = 8, kCalls = 200, kPixels = 64, kClasses = 10 };

static const char* path;
static neo_module* shared;
static float image[kPixels];
static float expected[kClasses];
static const int64_t dims[] = {1, 1, 8, 8};

static int run(const neo_module* module, const neo_token* token) {
  const neo_tensor input = {.dtype = NEO_FLOAT32, .rank = 4, .dims = dims, .data = image, .bytes = sizeof image};
  float scores[kClasses];
  neo_buffer output = {.dtype = NEO_FLOAT32, .data = scores, .bytes = sizeof scores};
  if (neo_run(module, &input, 1, &output, 1, token)) return token && neo_last_error_kind() == NEO_ERROR_CANCELLED;
  return output.written == sizeof scores && memcmp(scores, expected, sizeof scores) == 0;
}

static int call(const neo_module* module) {
  const neo_tensor input = {.dtype = NEO_FLOAT32, .rank = 4, .dims = dims, .data = image};
  neo_results* results;
  const neo_tensor* scores;
  if (neo_call(module, &input, 1, NULL, &results) || neo_result(results, 0, &scores)) return 0;
  const int same = scores->bytes == sizeof expected && memcmp(scores->data, expected, sizeof expected) == 0;
  return neo_release_results(results) == 0 && same;
}

static int load_and_run(void) {
  neo_module* own;
  neo_module* other;
  if (neo_load(path, 1, &own) || neo_with_threads(own, 2, &other) || neo_release(own)) return 0;
  const int same = run(other, NULL) && run(own, NULL) == 0 && strstr(neo_last_error(), "not released") != NULL;
  return neo_release(other) == 0 && same;
}

static void* cancel(void* token) {
  neo_cancel(token);
  return NULL;
}

static int run_and_cancel(void) {
  neo_token* token;
  pthread_t canceller;
  if (neo_new_token(&token) || pthread_create(&canceller, NULL, cancel, token)) return 0;
  const int same = run(shared, token);
  pthread_join(canceller, NULL);
  return neo_release_token(token) == 0 && same;
}

static void* work(void* failed) {
  for (int i = 0; i < kCalls; ++i) {
    const int same = i % 20 == 19  ? load_and_run()
                     : i % 10 == 9 ? run_and_cancel()
                     : i % 2       ? run(shared, NULL)
                                   : call(shared);
    if (!same) *(int*)failed += 1;
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  path = argv[1];
  for (int i = 0; i < kPixels; ++i) image[i] = (float)(i % 16) / 16;
  if (neo_load(path, 2, &shared)) return puts(neo_last_error());
  const neo_tensor input = {.dtype = NEO_FLOAT32, .rank = 4, .dims = dims, .data = image};
  neo_buffer output = {.dtype = NEO_FLOAT32, .data = expected, .bytes = sizeof expected};
  if (neo_run(shared, &input, 1, &output, 1, NULL)) return puts(neo_last_error());
  pthread_t threads[kThreads];
  int failed[kThreads] = {0};
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, work, &failed[i])) return 3;
  }
  int total = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    total += failed[i];
  }
  if (total) return printf("%d calls differ: %s\n", total, neo_last_error());
  printf("%d the same\n", kThreads * kCalls);
  return neo_release(shared) ? 4 : 0;
}
