#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/topology.h"

namespace neo {
namespace {

namespace fs = std::filesystem;

// How many different numbers of a kind the CPUs have: cores, nodes.
int count_of(const Topology& topology, int Cpu::*number) {
  std::set<int> numbers;
  for (const Cpu& cpu : topology.cpus) numbers.insert(cpu.*number);
  return static_cast<int>(numbers.size());
}

// A machine's /proc and /sys in a folder of its own.
class FakeMachine {
 public:
  FakeMachine() {
    std::string pattern = (fs::temp_directory_path() / "neo_topology_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~FakeMachine() { fs::remove_all(root_); }

  const std::string& root() const { return root_; }

  FakeMachine& file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
    return *this;
  }

  FakeMachine& online(const std::string& list) { return file("/sys/devices/system/cpu/online", list); }

  FakeMachine& cpu(int id, const std::string& name, const std::string& text) {
    return file(str("/sys/devices/system/cpu/cpu", id, "/", name), text);
  }

  FakeMachine& cache(int cpu_id, int index, int level, const std::string& type, const std::string& size) {
    const std::string folder = str("cache/index", index, "/");
    return cpu(cpu_id, folder + "level", std::to_string(level))
        .cpu(cpu_id, folder + "type", type)
        .cpu(cpu_id, folder + "size", size);
  }

  FakeMachine& cgroup_v2(const std::string& path) {
    file("/proc/self/mountinfo",
         "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
         "35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate");
    return file("/proc/self/cgroup", "0::" + path);
  }

  FakeMachine& cgroup_v1(const std::string& path, const std::string& mounted = "/") {
    file("/proc/self/mountinfo",
         "32 31 0:29 " + mounted + " /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n" +
             "35 31 0:32 " + mounted + " /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n" +
             "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw");
    return file("/proc/self/cgroup", "9:name=systemd:/\n3:cpuset:" + path + "\n2:cpu,cpuacct:" + path + "\n0::/");
  }

  Topology read(const std::vector<int>& affinity = {}) const { return read_topology(root_, affinity); }

 private:
  std::string root_;
};

std::vector<int> cpu_ids(const Topology& topology) {
  std::vector<int> ids;
  for (const Cpu& cpu : topology.cpus) ids.push_back(cpu.id);
  return ids;
}

TEST(Topology, empty_tree_is_one_cpu_with_usual_caches) {
  const Topology topology = FakeMachine().read();
  EXPECT_EQ(cpu_ids(topology), std::vector<int>({0}));
  EXPECT_EQ(topology.usable_cpus(), 1);
  EXPECT_EQ(topology.preferred_threads(), 1);
  EXPECT_FALSE(topology.quota_cpus.has_value());
  EXPECT_GT(topology.l1d_bytes, 0);
  EXPECT_GT(topology.l2_bytes, 0);
  EXPECT_EQ(topology.l3_bytes, 0);
}

TEST(Topology, two_plain_cores_with_caches) {
  FakeMachine machine;
  machine.online("0-1");
  for (int id = 0; id < 2; ++id) {
    machine.cpu(id, "topology/core_cpus_list", std::to_string(id));
    machine.cache(id, 0, 1, "Data", "48K").cache(id, 1, 1, "Instruction", "32K");
    machine.cache(id, 2, 2, "Unified", "1280K").cache(id, 3, 3, "Unified", "24M");
  }
  const Topology topology = machine.read();
  EXPECT_EQ(count_of(topology, &Cpu::core), 2);
  EXPECT_EQ(topology.usable_cpus(), 2);
  EXPECT_EQ(count_of(topology, &Cpu::node), 1);
  EXPECT_EQ(topology.l1d_bytes, 48 << 10);
  EXPECT_EQ(topology.l2_bytes, 1280 << 10);
  EXPECT_EQ(topology.l3_bytes, 24 << 20);
}

TEST(Topology, sixteen_cores_with_smt_siblings) {
  FakeMachine machine;
  machine.online("0-31");
  for (int id = 0; id < 32; ++id) machine.cpu(id, "topology/core_cpus_list", str(id % 16, ",", id % 16 + 16));
  const Topology topology = machine.read();
  EXPECT_EQ(topology.cpus.size(), 32u);
  EXPECT_EQ(count_of(topology, &Cpu::core), 16);
  EXPECT_EQ(topology.usable_cpus(), 32);
  EXPECT_EQ(topology.preferred_threads(), 16);
  const std::vector<int> placement = topology.placement();
  ASSERT_EQ(placement.size(), 32u);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(placement[static_cast<size_t>(i)], i);
}

TEST(Topology, adjacent_siblings_are_placed_last) {
  FakeMachine machine;
  machine.online("0-3");
  for (int id = 0; id < 4; ++id) machine.cpu(id, "topology/thread_siblings_list", str(id / 2 * 2, "-", id / 2 * 2 + 1));
  EXPECT_EQ(count_of(machine.read(), &Cpu::core), 2);
  EXPECT_EQ(machine.read().placement(), std::vector<int>({0, 2, 1, 3}));
}

TEST(Topology, cpus_that_share_a_cache_are_placed_together) {
  FakeMachine machine;
  machine.online("0-7");
  // Two sockets whose ids take turns, and pairs within that share a second level.
  for (int id = 0; id < 8; ++id) {
    const int pair = id % 4;
    machine.cache(id, 0, 1, "Data", "32K").cpu(id, "cache/index0/shared_cpu_list", std::to_string(id));
    machine.cache(id, 1, 2, "Unified", "1M").cpu(id, "cache/index1/shared_cpu_list", str(pair, ",", pair + 4));
    machine.cache(id, 2, 3, "Unified", "16M").cpu(id, "cache/index2/shared_cpu_list", id % 2 ? "1,3,5,7" : "0,2,4,6");
  }
  const Topology topology = machine.read();
  EXPECT_EQ(topology.placement(), std::vector<int>({0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(topology.cpus[5].l2, 1);
  EXPECT_EQ(topology.cpus[6].l3, 0);
  // A list that does not name the CPU itself says nothing.
  machine.cpu(6, "cache/index1/shared_cpu_list", "2-3");
  EXPECT_EQ(machine.read().cpus[6].l2, 6);
}

TEST(Topology, core_ids_tell_cores_apart_where_no_sibling_lists_are) {
  FakeMachine machine;
  machine.online("0-3");
  for (int id = 0; id < 4; ++id) {
    machine.cpu(id, "topology/core_id", "0").cpu(id, "topology/physical_package_id", std::to_string(id / 2));
  }
  EXPECT_EQ(count_of(machine.read(), &Cpu::core), 2);
  EXPECT_EQ(machine.read().cpus[3].package, 1);
}

TEST(Topology, two_numa_nodes) {
  FakeMachine machine;
  machine.online("0-7").file("/sys/devices/system/node/online", "0-1");
  machine.file("/sys/devices/system/node/node0/cpulist", "0-3").file("/sys/devices/system/node/node1/cpulist", "4-7");
  const Topology topology = machine.read();
  EXPECT_EQ(count_of(topology, &Cpu::node), 2);
  EXPECT_EQ(topology.cpus[3].node, 0);
  EXPECT_EQ(topology.cpus[4].node, 1);
  EXPECT_EQ(count_of(machine.read({5, 6}), &Cpu::node), 1);
}

TEST(Topology, slow_cores_of_big_little_are_not_preferred) {
  FakeMachine machine;
  machine.online("0-7");
  for (int id = 0; id < 8; ++id) machine.cpu(id, "cpu_capacity", id < 4 ? "400" : "1000");
  machine.cache(0, 0, 1, "Data", "32K").cache(4, 0, 1, "Data", "64K");
  const Topology topology = machine.read();
  EXPECT_EQ(topology.usable_cpus(), 8);
  EXPECT_EQ(topology.preferred_threads(), 4);
  EXPECT_EQ(topology.cpus[7].capacity, 1024);
  EXPECT_EQ(topology.cpus[0].capacity, 409);
  EXPECT_EQ(topology.l1d_bytes, 64 << 10);
  EXPECT_EQ(topology.placement(), std::vector<int>({4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(machine.read({0, 1}).preferred_threads(), 2);  // alone, they are the fastest
}

TEST(Topology, affinity_mask_narrows) {
  FakeMachine machine;
  machine.online("0-7");
  const Topology topology = machine.read({6, 2, 3});
  EXPECT_EQ(cpu_ids(topology), std::vector<int>({2, 3, 6}));
  EXPECT_EQ(topology.online_cpus, 8);
  EXPECT_EQ(topology.usable_cpus(), 3);
}

TEST(Topology, offline_cpus_do_not_count) {
  FakeMachine machine;
  machine.online("0,2-3,5");
  EXPECT_EQ(cpu_ids(machine.read()), std::vector<int>({0, 2, 3, 5}));
  EXPECT_EQ(cpu_ids(machine.read({0, 1, 2})), std::vector<int>({0, 2}));
}

TEST(Topology, cpuset_narrows_and_may_come_from_an_outer_group) {
  FakeMachine v2;
  v2.online("0-7").cgroup_v2("/a/b").file("/sys/fs/cgroup/a/cpuset.cpus.effective", "4-5");
  EXPECT_EQ(cpu_ids(v2.read()), std::vector<int>({4, 5}));
  EXPECT_EQ(cpu_ids(v2.read({5, 6})), std::vector<int>({5}));

  FakeMachine v1;
  v1.online("0-7").cgroup_v1("/box").file("/sys/fs/cgroup/cpuset/box/cpuset.cpus", "1,3");
  EXPECT_EQ(cpu_ids(v1.read()), std::vector<int>({1, 3}));
}

TEST(Topology, cpuset_that_contradicts_the_mask_is_passed_over) {
  FakeMachine machine;
  machine.online("0-7").cgroup_v2("/").file("/sys/fs/cgroup/cpuset.cpus.effective", "0-1");
  EXPECT_EQ(cpu_ids(machine.read({6, 7})), std::vector<int>({6, 7}));
}

TEST(Topology, quota_of_one_and_a_half_cpus_is_two_threads) {
  FakeMachine machine;
  machine.online("0-7").cgroup_v2("/box").file("/sys/fs/cgroup/box/cpu.max", "150000 100000");
  const Topology topology = machine.read();
  EXPECT_DOUBLE_EQ(topology.quota_cpus.value(), 1.5);
  EXPECT_EQ(topology.cpus.size(), 8u);
  EXPECT_EQ(topology.usable_cpus(), 2);
  EXPECT_EQ(topology.preferred_threads(), 2);
}

TEST(Topology, quota_is_at_least_one_thread_and_never_adds_cpus) {
  FakeMachine tiny;
  tiny.online("0-7").cgroup_v2("/").file("/sys/fs/cgroup/cpu.max", "5000 100000");
  EXPECT_EQ(tiny.read().usable_cpus(), 1);
  FakeMachine large;
  large.online("0-1").cgroup_v2("/").file("/sys/fs/cgroup/cpu.max", "900000 100000");
  EXPECT_EQ(large.read().usable_cpus(), 2);
}

TEST(Topology, least_quota_of_nested_groups_counts) {
  FakeMachine machine;
  machine.online("0-15").cgroup_v2("/outer/middle/inner");
  machine.file("/sys/fs/cgroup/outer/cpu.max", "300000 100000");
  machine.file("/sys/fs/cgroup/outer/middle/cpu.max", "max 100000");
  machine.file("/sys/fs/cgroup/outer/middle/inner/cpu.max", "800000 100000");
  EXPECT_EQ(machine.read().usable_cpus(), 3);
  machine.file("/sys/fs/cgroup/outer/middle/inner/cpu.max", "200000 100000");
  EXPECT_EQ(machine.read().usable_cpus(), 2);
}

TEST(Topology, quota_of_control_groups_v1) {
  FakeMachine machine;
  machine.online("0-15").cgroup_v1("/outer/inner");
  EXPECT_FALSE(machine.read().quota_cpus.has_value());
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/outer";
  machine.file(folder + "/inner/cpu.cfs_quota_us", "-1").file(folder + "/inner/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(machine.read().quota_cpus.has_value());
  machine.file(folder + "/cpu.cfs_quota_us", "250000").file(folder + "/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.read().usable_cpus(), 3);
}

TEST(Topology, quota_of_a_container_whose_group_is_the_mount_point) {
  FakeMachine machine;
  machine.online("0-15").cgroup_v1("/docker/1234", "/docker/1234");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.read().usable_cpus(), 4);
}

TEST(Topology, group_outside_the_mounted_part_leaves_the_mount_point) {
  FakeMachine machine;
  machine.online("0-15").cgroup_v2("/../../elsewhere").file("/sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(machine.read().usable_cpus(), 1);
}

TEST(Topology, mount_point_with_a_blank) {
  FakeMachine machine;
  machine.online("0-3").file("/proc/self/cgroup", "0::/");
  machine.file("/proc/self/mountinfo", "35 25 0:30 / /my\\040groups rw - cgroup2 cgroup2 rw");
  machine.file("/my groups/cpu.max", "200000 100000");
  EXPECT_EQ(machine.read().usable_cpus(), 2);
}

TEST(Topology, malformed_files_count_as_absent) {
  for (const char* text : {"", "max", "abc 100000", "100000 0", "-5 100000", "100000 100000 1", "1e5 100000"}) {
    FakeMachine machine;
    machine.online("0-3").cgroup_v2("/").file("/sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(machine.read().quota_cpus.has_value()) << text;
  }
  for (const char* text : {"3-1", "a-b", "0-99999999999", "0-", "-1", "0-3;"}) {
    FakeMachine machine;
    machine.online(text);
    EXPECT_EQ(machine.read().cpus.size(), 1u) << text;
    EXPECT_EQ(machine.read({0, 1}).cpus.size(), 2u) << text;
  }
  FakeMachine machine;
  machine.online("0").cache(0, 0, 1, "Data", "big").cache(0, 1, 2, "Unified", "-4K").cache(0, 2, 3, "Unified", "0");
  machine.file("/proc/self/mountinfo", "- - -\n\nx").file("/proc/self/cgroup", "nonsense\n::");
  const Topology topology = machine.read();
  EXPECT_EQ(topology.l1d_bytes, Topology().l1d_bytes);
  EXPECT_EQ(topology.l2_bytes, Topology().l2_bytes);
  EXPECT_EQ(topology.l3_bytes, 0);
}

TEST(Topology, host_is_within_its_affinity_mask) {
  const Topology& host = host_topology();
  EXPECT_EQ(&host, &host_topology());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof mask, &mask), 0);
  ASSERT_FALSE(host.cpus.empty());
  for (const Cpu& cpu : host.cpus) EXPECT_TRUE(CPU_ISSET(cpu.id, &mask)) << cpu.id;
  EXPECT_GE(host.usable_cpus(), 1);
  EXPECT_LE(host.usable_cpus(), CPU_COUNT(&mask));
  EXPECT_LE(host.preferred_threads(), host.usable_cpus());
  EXPECT_EQ(host.placement().size(), host.cpus.size());
}

TEST(Topology, knob_sets_the_default_threads) {
  unsetenv("NEO_NUM_THREADS");
  EXPECT_EQ(default_threads(), host_topology().preferred_threads());
  setenv("NEO_NUM_THREADS", "3", 1);
  EXPECT_EQ(default_threads(), 3);
  setenv("NEO_NUM_THREADS", "many", 1);
  EXPECT_THROW(default_threads(), Error);
  unsetenv("NEO_NUM_THREADS");
}

TEST(FreeMemory, is_what_the_machine_has_available) {
  FakeMachine machine;
  EXPECT_FALSE(read_free_bytes(machine.root()).has_value());
  machine.file("/proc/meminfo", "MemTotal:       16000 kB\nMemFree:  100 kB\nMemAvailable:    8000 kB");
  EXPECT_EQ(read_free_bytes(machine.root()), 8000 * 1024);
  machine.file("/proc/meminfo", "MemAvailable: many kB");
  EXPECT_FALSE(read_free_bytes(machine.root()).has_value());
}

TEST(FreeMemory, is_at_most_what_the_groups_of_the_process_grant) {
  FakeMachine machine;
  machine.cgroup_v2("/a/b").file("/proc/meminfo", "MemAvailable:    8000 kB");
  const std::string folder = "/sys/fs/cgroup/a";
  machine.file(folder + "/b/memory.max", "max").file(folder + "/b/memory.current", "5000");
  EXPECT_EQ(read_free_bytes(machine.root()), 8000 * 1024);
  machine.file(folder + "/memory.max", "1000000").file(folder + "/memory.current", "700000");
  EXPECT_EQ(read_free_bytes(machine.root()), 300000);
  // Pages of files are given up where memory is short.
  machine.file(folder + "/memory.stat", "anon 1\ninactive_file 100000\nactive_file 50000");
  EXPECT_EQ(read_free_bytes(machine.root()), 450000);
  machine.file(folder + "/memory.current", "2000000");
  EXPECT_EQ(read_free_bytes(machine.root()), 0);
}

}  // namespace
}  // namespace neo
