// Linked into the libraries of wheels by tools/wheels.sh, which are compiled against Debian 11's glibc 2.31 and must
// not ask for more than 2.28. What the compiler's C++ library takes from newer ones stands here, and so do functions of
// libm that 2.29 has a second time: the first ones set errno in more cases and give the same numbers.

#include <sys/random.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

#define FIRST_OF(function)                                              \
  double first_##function(double);                                      \
  __asm__(".symver first_" #function ", " #function "@" FIRST_VERSION); \
  double function(double x) {                                           \
    return first_##function(x);                                         \
  }

FIRST_OF(exp)
FIRST_OF(exp2)
FIRST_OF(log)
FIRST_OF(log2)

double first_pow(double, double);
__asm__(".symver first_pow, pow@" FIRST_VERSION);
double pow(double x, double y) {
  return first_pow(x, y);
}

// std::shared_ptr counts without atomic instructions while this is not zero.
char __libc_single_threaded = 0;

// std::random_device.
unsigned arc4random(void) {
  unsigned number;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
