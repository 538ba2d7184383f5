#include "base/topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/knobs.h"

namespace neo {
namespace {

constexpr int kFullCapacity = 1024;
constexpr int kMaxCpuId = 1 << 20;  // a file that claims more is malformed

std::optional<std::string> find_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  std::string out = text.str();
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> find_int(const std::string& path) {
  const std::optional<std::string> text = find_text(path);
  return text ? parse_int(*text) : std::nullopt;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// The kernel's list format: "0-3,8,10-11". Empty when absent or malformed.
std::set<int> read_cpu_list(const std::string& path) {
  std::set<int> cpus;
  for (const std::string& range : split(find_text(path).value_or(""), ',')) {
    const size_t dash = range.find('-');
    const auto first = parse_int(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpuId) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  return cpus;
}

// "32K", "1024K", "2M", "1G" or plain bytes.
std::optional<int64_t> parse_size(std::string text) {
  int shift = 0;
  if (!text.empty()) {
    const char unit = text.back();
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    if (shift != 0) text.pop_back();
  }
  const std::optional<int64_t> value = parse_int(text);
  if (!value || *value <= 0 || *value > (int64_t{1} << 40) >> shift) return std::nullopt;
  return *value << shift;
}

// --- control groups -------------------------------------------------------------------------------------------

// mountinfo writes blanks and backslashes in paths as \040 and the like.
std::string unescape_octal(const std::string& text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct CgroupMount {
  bool is_v2 = false;
  std::string root;                   // path within the hierarchy that is mounted
  std::string point;                  // where
  std::set<std::string> controllers;  // v1 only
};

// Lines of /proc/self/mountinfo: id parent device root point options [tags...] - type source super_options.
std::vector<CgroupMount> read_cgroup_mounts(const std::string& root) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(find_text(root + "/proc/self/mountinfo").value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const std::string& type = dash[1];
    if (type != "cgroup" && type != "cgroup2") continue;
    CgroupMount mount{type == "cgroup2", unescape_octal(fields[3]), unescape_octal(fields[4]), {}};
    if (!mount.is_v2) {
      for (const std::string& option : split(dash[3], ',')) mount.controllers.insert(option);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The process's group in the hierarchy: the path of its line in /proc/self/cgroup ("id:controllers:path"; v2 has
// no controllers).
std::optional<std::string> find_cgroup_path(const std::string& root, const CgroupMount& mount,
                                            const std::string& controller) {
  for (const std::string& line : split(find_text(root + "/proc/self/cgroup").value_or(""), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool is_ours = mount.is_v2
                             ? controllers.empty()
                             : std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
    if (is_ours) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The folders of the process's group and of those around it, innermost first, as far as they are mounted.
std::vector<std::string> find_cgroup_folders(const std::string& root, const CgroupMount& mount,
                                             const std::string& controller) {
  std::string path = find_cgroup_path(root, mount, controller).value_or("/");
  // A path outside the mounted part (another namespace) leaves only the mount point.
  if (mount.root != "/") {
    const bool is_inside = path == mount.root || path.rfind(mount.root + "/", 0) == 0;
    path = is_inside ? path.substr(mount.root.size()) : "";
  }
  if (path.find("..") != std::string::npos) path.clear();

  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(root + mount.point + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  folders.push_back(root + mount.point);
  return folders;
}

std::optional<double> as_quota(std::optional<int64_t> quota_us, std::optional<int64_t> period_us) {
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

// The limit of one group. v2: cpu.max, "max 100000" or "150000 100000". v1: two files, -1 for no limit.
std::optional<double> find_group_quota(const std::string& folder, bool is_v2) {
  if (!is_v2) return as_quota(find_int(folder + "/cpu.cfs_quota_us"), find_int(folder + "/cpu.cfs_period_us"));
  const std::vector<std::string> words = split(find_text(folder + "/cpu.max").value_or(""), ' ');
  return words.size() == 2 ? as_quota(parse_int(words[0]), parse_int(words[1])) : std::nullopt;
}

// The least limit of the group and all around it.
std::optional<double> read_quota(const std::string& root, const std::vector<CgroupMount>& mounts) {
  std::optional<double> least;
  for (const CgroupMount& mount : mounts) {
    if (!mount.is_v2 && mount.controllers.count("cpu") == 0) continue;
    for (const std::string& folder : find_cgroup_folders(root, mount, "cpu")) {
      const std::optional<double> quota = find_group_quota(folder, mount.is_v2);
      if (quota && (!least || *quota < *least)) least = quota;
    }
  }
  return least;
}

// The number in a line "name 123" or "name:   123 kB" of a file's text.
std::optional<int64_t> find_entry(const std::string& text, const std::string& name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const size_t begin = line.find_first_of("0123456789", name.size());
    if (begin == std::string::npos) return std::nullopt;
    return parse_int(std::string_view(line).substr(begin, line.find_first_not_of("0123456789", begin) - begin));
  }
  return std::nullopt;
}

// The bytes that one group may still take; a limit beyond any machine's memory is none.
std::optional<int64_t> find_group_free(const std::string& folder, bool is_v2) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  const auto limit = find_int(folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = find_int(folder + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used || *limit < 0 || *limit >= kNoLimit || *used < 0) return std::nullopt;
  const std::string stat = find_text(folder + "/memory.stat").value_or("");
  const std::string prefix = is_v2 ? "" : "total_";
  const int64_t cached =
      find_entry(stat, prefix + "inactive_file").value_or(0) + find_entry(stat, prefix + "active_file").value_or(0);
  return std::max<int64_t>(*limit - std::max<int64_t>(*used - cached, 0), 0);
}

// The CPUs of the innermost group that says; empty: none says.
std::set<int> read_cpuset(const std::string& root, const std::vector<CgroupMount>& mounts) {
  for (const CgroupMount& mount : mounts) {
    if (!mount.is_v2 && mount.controllers.count("cpuset") == 0) continue;
    for (const std::string& folder : find_cgroup_folders(root, mount, "cpuset")) {
      for (const char* file : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"}) {
        std::set<int> cpus = read_cpu_list(folder + file);
        if (!cpus.empty()) return cpus;
      }
    }
  }
  return {};
}

// --- processors -----------------------------------------------------------------------------------------------

std::set<int> intersect(const std::set<int>& a, const std::set<int>& b) {
  std::set<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

std::map<int, int> read_nodes(const std::string& root) {
  std::map<int, int> node_of_cpu;
  const std::string nodes = root + "/sys/devices/system/node";
  for (const int node : read_cpu_list(nodes + "/online")) {
    for (const int cpu : read_cpu_list(nodes + "/node" + std::to_string(node) + "/cpulist")) node_of_cpu[cpu] = node;
  }
  return node_of_cpu;
}

// Which caches a CPU shares with others.
void read_sharing(const std::string& folder, Cpu& cpu) {
  cpu.l2 = cpu.id;
  for (int index = 0;; ++index) {
    const std::string cache = folder + "/cache/index" + std::to_string(index);
    const std::optional<int64_t> level = find_int(cache + "/level");
    if (!level) return;
    const std::set<int> sharers = read_cpu_list(cache + "/shared_cpu_list");
    if (sharers.count(cpu.id) == 0) continue;
    if (*level == 2) cpu.l2 = *sharers.begin();
    if (*level == 3) cpu.l3 = *sharers.begin();
  }
}

std::vector<Cpu> read_cpus(const std::string& root, const std::set<int>& ids) {
  const std::map<int, int> node_of_cpu = read_nodes(root);
  std::map<std::vector<int64_t>, int> core_of_key;  // what tells a physical core -> its number
  std::vector<Cpu> cpus;
  int fastest = 1;
  for (const int id : ids) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(id);
    Cpu cpu;
    cpu.id = id;
    cpu.package = static_cast<int>(find_int(folder + "/topology/physical_package_id").value_or(0));
    const auto node = node_of_cpu.find(id);
    if (node != node_of_cpu.end()) cpu.node = node->second;
    cpu.capacity =
        static_cast<int>(std::clamp<int64_t>(find_int(folder + "/cpu_capacity").value_or(kFullCapacity), 1, 1 << 20));
    fastest = std::max(fastest, cpu.capacity);

    std::set<int> siblings = read_cpu_list(folder + "/topology/core_cpus_list");
    if (siblings.empty()) siblings = read_cpu_list(folder + "/topology/thread_siblings_list");
    const std::optional<int64_t> core_id = find_int(folder + "/topology/core_id");
    std::vector<int64_t> key;
    if (!siblings.empty()) {
      key = {0, *siblings.begin()};
    } else if (core_id) {
      key = {1, cpu.package, *core_id};
    } else {
      key = {2, id};
    }
    read_sharing(folder, cpu);
    cpu.core = core_of_key.emplace(std::move(key), static_cast<int>(core_of_key.size())).first->second;
    cpus.push_back(cpu);
  }
  for (Cpu& cpu : cpus) {
    cpu.capacity = std::max(1, static_cast<int>(static_cast<int64_t>(cpu.capacity) * kFullCapacity / fastest));
  }
  return cpus;
}

void read_caches(const std::string& root, Topology& topology) {
  const auto fastest = std::max_element(topology.cpus.begin(), topology.cpus.end(),
                                        [](const Cpu& a, const Cpu& b) { return a.capacity < b.capacity; });
  const std::string caches = root + "/sys/devices/system/cpu/cpu" + std::to_string(fastest->id) + "/cache/index";
  for (int index = 0;; ++index) {
    const std::string folder = caches + std::to_string(index);
    const std::optional<int64_t> level = find_int(folder + "/level");
    if (!level) return;
    const std::optional<int64_t> bytes = parse_size(find_text(folder + "/size").value_or(""));
    if (!bytes || find_text(folder + "/type") == "Instruction") continue;
    if (*level == 1) topology.l1d_bytes = *bytes;
    if (*level == 2) topology.l2_bytes = *bytes;
    if (*level == 3) topology.l3_bytes = *bytes;
  }
}

// The mask of the main thread: the calling one may be bound more narrowly by whoever made it.
std::vector<int> process_affinity() {
  for (int capacity = CPU_SETSIZE; capacity <= kMaxCpuId; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set);
    const bool is_read = sched_getaffinity(getpid(), bytes, set) == 0;
    std::vector<int> cpus;
    for (int cpu = 0; is_read && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (is_read) return cpus;
  }
  return {};
}

int apply_quota(int threads, const std::optional<double>& quota_cpus) {
  if (quota_cpus && *quota_cpus < threads) threads = static_cast<int>(std::ceil(*quota_cpus));
  return std::max(threads, 1);
}

}  // namespace

int Topology::usable_cpus() const {
  return apply_quota(static_cast<int>(cpus.size()), quota_cpus);
}

int Topology::preferred_threads() const {
  std::set<int> cores;
  for (const Cpu& cpu : cpus) {
    if (2 * cpu.capacity >= kFullCapacity) cores.insert(cpu.core);
  }
  return apply_quota(static_cast<int>(cores.size()), quota_cpus);
}

std::vector<int> Topology::placement() const {
  struct Place {
    int sibling;  // how many CPUs of the same core come before
    int capacity;
    int l3, l2;
    int id;
  };
  std::map<int, int> filled;
  std::vector<Place> places;
  for (const Cpu& cpu : cpus) places.push_back({filled[cpu.core]++, cpu.capacity, cpu.l3, cpu.l2, cpu.id});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tuple(a.sibling, -a.capacity, a.l3, a.l2, a.id) < std::tuple(b.sibling, -b.capacity, b.l3, b.l2, b.id);
  });
  std::vector<int> ids;
  for (const Place& place : places) ids.push_back(place.id);
  return ids;
}

Topology read_topology(const std::string& root, const std::vector<int>& affinity) {
  const std::set<int> mask(affinity.begin(), affinity.end());
  const std::set<int> online = read_cpu_list(root + "/sys/devices/system/cpu/online");
  const std::vector<CgroupMount> mounts = read_cgroup_mounts(root);

  // Each source narrows the set; one that contradicts the others (it speaks of another namespace) is passed over.
  std::set<int> ids = mask.empty() ? online : mask;
  for (const std::set<int>& allowed : {online, read_cpuset(root, mounts)}) {
    std::set<int> narrowed = intersect(ids, allowed);
    if (!narrowed.empty()) ids = std::move(narrowed);
  }
  if (ids.empty()) ids.insert(0);

  Topology topology;
  topology.online_cpus = static_cast<int>(std::max(online.size(), ids.size()));
  topology.quota_cpus = read_quota(root, mounts);
  topology.cpus = read_cpus(root, ids);
  read_caches(root, topology);
  return topology;
}

std::optional<int64_t> read_free_bytes(const std::string& root) {
  constexpr int64_t kMaxKilobytes = int64_t{1} << 50;
  std::optional<int64_t> least = find_entry(find_text(root + "/proc/meminfo").value_or(""), "MemAvailable:");
  if (least) *least = std::clamp<int64_t>(*least, 0, kMaxKilobytes) << 10;
  for (const CgroupMount& mount : read_cgroup_mounts(root)) {
    if (!mount.is_v2 && mount.controllers.count("memory") == 0) continue;
    for (const std::string& folder : find_cgroup_folders(root, mount, "memory")) {
      const std::optional<int64_t> free = find_group_free(folder, mount.is_v2);
      if (free && (!least || *free < *least)) least = free;
    }
  }
  return least;
}

const Topology& host_topology() {
  static const Topology topology = read_topology("", process_affinity());
  return topology;
}

int default_threads() {
  const int64_t threads = knob_int(Knob::NumThreads);
  return threads > 0 ? static_cast<int>(threads) : host_topology().preferred_threads();
}

}  // namespace neo
