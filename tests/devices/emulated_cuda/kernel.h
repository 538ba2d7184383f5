// What the text of a CUDA kernel needs to be a function of the host: csrc/kernel_ir/print.cpp decides what that is.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct EmulatedIndex {
  unsigned x, y, z;
};

// What the driver and a kernel share while the kernel runs.
struct Emulated {
  EmulatedIndex grid, block, thread, threads;
  unsigned char exchange[1024][64];  // of each thread of the block
  void (*wait)();                    // until all threads of the block wait
};

static Emulated* emulated;
extern "C" __attribute__((visibility("default"))) void emulated_use(Emulated* shared) {
  emulated = shared;
}

#define gridDim (emulated->grid)
#define blockIdx (emulated->block)
#define threadIdx (emulated->thread)

static inline unsigned emulated_place() {
  const EmulatedIndex &t = emulated->thread, &n = emulated->threads;
  return (t.z * n.y + t.y) * n.x + t.x;
}

static inline void __syncthreads() {
  emulated->wait();
}

template <class T>
T __shfl_sync(unsigned, T value, int lane, int width) {
  const unsigned place = emulated_place();
  std::memcpy(emulated->exchange[place], &value, sizeof value);
  emulated->wait();
  T other;
  std::memcpy(&other, emulated->exchange[place / width * width + lane % width], sizeof other);
  emulated->wait();
  return other;
}

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class To, class From>
static inline To emulated_bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int x) {
  return emulated_bits<float>(x);
}
static inline float __uint_as_float(unsigned x) {
  return emulated_bits<float>(x);
}
static inline unsigned __float_as_uint(float x) {
  return emulated_bits<unsigned>(x);
}
static inline int __float_as_int(float x) {
  return emulated_bits<int>(x);
}

// Threads of a block take turns and blocks run one after the other: nothing comes between.
template <class T, class V, class F>
T emulated_atomic(T* p, V v, F f) {
  const T old = *p;
  *p = f(old, static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicAdd(T* p, V v) {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long> ||
                std::is_same_v<T, float> || std::is_same_v<T, double>);  // what CUDA has
  return emulated_atomic(p, v, [](T a, T b) { return a + b; });
}
template <class T, class V>
T atomicMin(T* p, V v) {
  static_assert(std::is_integral_v<T> && sizeof(T) >= 4);
  return emulated_atomic(p, v, [](T a, T b) { return b < a ? b : a; });
}
template <class T, class V>
T atomicMax(T* p, V v) {
  static_assert(std::is_integral_v<T> && sizeof(T) >= 4);
  return emulated_atomic(p, v, [](T a, T b) { return b > a ? b : a; });
}
template <class T, class V>
T atomicOr(T* p, V v) {
  static_assert(std::is_integral_v<T> && sizeof(T) >= 4);
  return emulated_atomic(p, v, [](T a, T b) { return a | b; });
}

static inline unsigned emulated_tf32(float a) {
  const unsigned u = __float_as_uint(a);
  return (u & 0x7f800000u) != 0x7f800000u ? (u + 0x1000u) & 0xffffe000u : u;
}

// dp4a.s32.s32
static inline int emulated_dot(int a, int b, int c) {
  signed char x[4], y[4];
  std::memcpy(x, &a, sizeof x);
  std::memcpy(y, &b, sizeof y);
  for (int i = 0; i < 4; ++i) c += x[i] * y[i];
  return c;
}

// cvt.f32.f16 and cvt.rn.f16.f32
static inline float emulated_widened(unsigned short bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return (float)half;
}
static inline unsigned short emulated_narrowed(float a) {
  const _Float16 half = (_Float16)a;
  unsigned short bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32; kernel_ir/stmt.h says which thread holds which elements.
template <class A, class B, class C>
void emulated_mma(const A& a, const B& b, C& c) {
  float mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned place = emulated_place(), first = place / 32 * 32, g = place % 32 / 4, i = place % 4;
  std::memcpy(emulated->exchange[place], mine, sizeof mine);
  emulated->wait();
  const auto held = [&](unsigned thread, int element) {
    float x;
    std::memcpy(&x, emulated->exchange[first + thread] + 4 * element, sizeof x);
    return __uint_as_float(__float_as_uint(x) & 0xffffe000u);  // the instruction reads no more of an operand
  };
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = g + e / 2 * 8, column = 2 * i + e % 2;
    float sum = c[e];
    for (unsigned k = 0; k < 8; ++k) {
      sum += held(row % 8 * 4 + k % 4, row / 8 + k / 4 * 2) * held(column * 4 + k % 4, 4 + k / 4);
    }
    c[e] = sum;
  }
  emulated->wait();
}

template <class... A, size_t... I>
void emulated_call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_cv_t<A>*>(arguments[I])...);
}
template <class... A>
void emulated_call(void (*kernel)(A...), void** arguments) {
  emulated_call(kernel, arguments, std::index_sequence_for<A...>());
}
// The bytes of each parameter, of pointers as a negative number.
template <class... A>
int emulated_sizes(void (*)(A...), int* sizes) {
  int count = 0;
  ((sizes[count++] = std::is_pointer_v<A> ? -static_cast<int>(sizeof(A)) : static_cast<int>(sizeof(A))), ...);
  return count;
}
#define EMULATED_KERNEL(name)                                                            \
  extern "C" __attribute__((visibility("default"))) void emulated_run_##name(void** a) { \
    emulated_call(name, a);                                                              \
  }                                                                                      \
  extern "C" __attribute__((visibility("default"))) int emulated_sizes_##name(int* s) {  \
    return emulated_sizes(name, s);                                                      \
  }
