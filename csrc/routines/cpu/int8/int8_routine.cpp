#include "routines/cpu/int8/int8_routine.h"

namespace neo {

std::span<const std::string_view> Int8Routine::products() const {
  static constexpr std::string_view kConv[] = {"Conv", "ConvInteger"};
  return kConv;
}

std::vector<std::string_view> Int8Routine::roots() const {
  std::vector<std::string_view> roots(products().begin(), products().end());
  roots.push_back("QuantizeLinear");
  return roots;
}

std::vector<Workload> Int8Routine::matches(const Node& root, const Graph::Users& users, const Graph& graph) const {
  return match_int8_products(root, products(), users, graph);
}

std::optional<std::string> Int8Routine::rejects(const Workload& workload, const Target& target) const {
  std::string why;
  const auto problem = Int8Problem::read(workload, &why);
  return problem ? rejects_problem(*problem, target) : why;
}

}  // namespace neo
