#include "saved/saved.h"

namespace neo {

Configuration configuration_for(const SavedModule& saved, int threads) {
  const bool fits = saved.chosen && saved.chosen->all_threads() <= threads;
  return fits ? *saved.chosen : Configuration{1, threads};
}

}  // namespace neo
