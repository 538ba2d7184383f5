#include "runtime/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace neo {

void sleep_while(StateWord& word, uint32_t value, int64_t timeout_us) {
  const timespec timeout{timeout_us / 1000000, timeout_us % 1000000 * 1000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, timeout_us > 0 ? &timeout : nullptr,
          nullptr, 0);
}

void wake_sleeper(StateWord& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace neo
