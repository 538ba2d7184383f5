#include "select/solve.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "bindings/bindings.h"
#include "select/elimination.h"

namespace neo::python {
namespace {

using select::Problem;

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Indices = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

template <class T>
py::array_t<T> array_of(const std::vector<T>& x) {
  return py::array_t<T>(static_cast<py::ssize_t>(x.size()), x.data());
}

// Walks a flat array, table by table.
class Reader {
 public:
  explicit Reader(const Numbers& values) : at_(values.data()), end_(at_ + values.size()) {}

  const double* take(size_t count) {
    NEO_CHECK(count <= static_cast<size_t>(end_ - at_), Model, "select", "a table must have a number per choice. Got ",
              end_ - at_, " numbers, expected ", count);
    const double* from = at_;
    at_ += count;
    return from;
  }

 private:
  const double* at_;
  const double* end_;
};

struct Resource {
  double limit;
  Numbers vectors;
  Indices pairs;
  Numbers matrices;
};

Problem problem_of(const Indices& sizes, const Numbers& costs, const Indices& pairs, const Numbers& matrices,
                   const std::vector<Resource>& resources) {
  Problem problem;
  problem.planes = 1 + static_cast<int>(resources.size());
  const int64_t count = sizes.size();
  const auto size = [&](int64_t v) { return static_cast<size_t>(sizes.data()[v]); };
  const auto check = [&](int64_t u, int64_t v) {
    NEO_CHECK(0 <= u && u < v && v < count, Model, "select", "a pair must be of two variables, the lower first. Got (",
              u, ", ", v, "), expected two below ", count);
  };
  std::vector<Reader> vectors{Reader(costs)};
  for (const Resource& r : resources) {
    problem.limits.push_back(r.limit);
    vectors.emplace_back(r.vectors);
  }
  for (int64_t v = 0; v < count; ++v) {
    NEO_CHECK(sizes.data()[v] > 0, Model, "select", "a variable must have a choice. Got ", sizes.data()[v], " - at ",
              v);
    auto& unary = problem.unary.emplace_back();
    unary.reserve(size(v) * vectors.size());
    for (Reader& reader : vectors) {
      const double* from = reader.take(size(v));
      unary.insert(unary.end(), from, from + size(v));
    }
  }
  Reader cells(matrices);
  problem.pairs.reserve(static_cast<size_t>(pairs.size() / 2));
  for (int64_t i = 0; i + 1 < pairs.size(); i += 2) {
    const int64_t u = pairs.data()[i], v = pairs.data()[i + 1];
    check(u, v);
    const double* from = cells.take(size(u) * size(v));
    problem.pairs.push_back({static_cast<int>(u), static_cast<int>(v), 1, {from, from + size(u) * size(v)}});
  }
  std::map<std::pair<int, int>, size_t> index;
  for (size_t k = 0; k < resources.size(); ++k) {
    const Resource& r = resources[k];
    if (r.pairs.size() && index.empty()) {
      for (size_t i = 0; i < problem.pairs.size(); ++i) index[{problem.pairs[i].u, problem.pairs[i].v}] = i;
    }
    Reader used(r.matrices);
    for (int64_t i = 0; i + 1 < r.pairs.size(); i += 2) {
      const int64_t u = r.pairs.data()[i], v = r.pairs.data()[i + 1];
      check(u, v);
      const size_t plane = size(u) * size(v);
      const auto [found, is_new] = index.try_emplace({static_cast<int>(u), static_cast<int>(v)}, problem.pairs.size());
      if (is_new) problem.pairs.push_back({static_cast<int>(u), static_cast<int>(v), 1, std::vector<double>(plane)});
      Problem::Pair& pair = problem.pairs[found->second];
      pair.planes = problem.planes;
      pair.values.resize(plane * static_cast<size_t>(problem.planes), 0.0);
      const double* from = used.take(plane);
      std::copy(from, from + plane, pair.values.begin() + static_cast<std::ptrdiff_t>((k + 1) * plane));
    }
  }
  return problem;
}

py::tuple tuple_of(const std::vector<int>& x) {
  py::tuple out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i];
  return out;
}

py::tuple relaxation_of(const select::Relaxation& relaxation) {
  py::list shifts;
  for (const auto& shift : relaxation.shifts) {
    shifts.append(py::make_tuple(tuple_of(shift.scope), shift.axis, array_of(shift.added)));
  }
  py::dict splits;
  for (size_t v = 0; v < relaxation.splits.size(); ++v) {
    py::list parts;
    for (const auto& split : relaxation.splits[v]) {
      py::list scopes;
      for (const auto& scope : split.scopes) scopes.append(tuple_of(scope));
      parts.append(py::make_tuple(scopes, array_of(split.added)));
    }
    if (!relaxation.splits[v].empty()) splits[py::int_(v)] = parts;
  }
  return py::make_tuple(relaxation.prices, relaxation.resource, shifts, splits);
}

py::dict certificate_of(const select::Certificate& certificate) {
  py::dict out;
  out["steps"] = array_of(certificate.steps);
  out["uses_limits"] = certificate.uses_limits;
  out["limited"] = certificate.limited;
  std::vector<int> order;
  for (const int v : certificate.search.order) order.push_back(certificate.searched[select::at(v)]);
  out["order"] = order;
  py::list relaxations;
  for (const auto& relaxation : certificate.search.relaxations) relaxations.append(relaxation_of(relaxation));
  out["relaxations"] = relaxations;
  return out;
}

const char* name_of(select::Obstacle obstacle) {
  switch (obstacle) {
    case select::Obstacle::Variable:
      return "variable";
    case select::Obstacle::Pairs:
      return "pairs";
    case select::Obstacle::Limit:
      return "limit";
    case select::Obstacle::Limits:
      return "limits";
    case select::Obstacle::LimitsEffort:
      return "limits, effort";
    case select::Obstacle::Effort:
      return "effort";
    case select::Obstacle::None:
      break;
  }
  return "";
}

py::dict solution_of(const select::Solution& solution, bool certify) {
  py::dict out;
  out["choice"] = solution.choice;
  out["bound"] = solution.bound;
  out["proven"] = solution.proven;
  out["method"] = std::string(solution.method);
  out["obstacle"] = name_of(solution.obstacle);
  out["which"] = solution.which;
  out["smallest"] = solution.smallest;
  out["smallest_proven"] = solution.smallest_proven;
  if (certify) out["certificate"] = certificate_of(solution.certificate);
  return out;
}

}  // namespace

void bind_solve(py::module_& m) {
  m.def(
      "solve",
      [](const Indices& sizes, const Numbers& costs, const Indices& pairs, const Numbers& matrices,
         const std::vector<std::tuple<double, Numbers, Indices, Numbers>>& resources, std::optional<double> budget_s,
         bool certify, bool search_alone, const std::map<std::string, double>& work) {
        std::vector<Resource> limited;
        for (const auto& [limit, vectors, used, values] : resources) limited.push_back({limit, vectors, used, values});
        const Problem problem = problem_of(sizes, costs, pairs, matrices, limited);
        select::SolveOptions options;
        options.certify = certify;
        options.search_alone = search_alone;
        for (const auto& [name, value] : work) {
          double* const member = options.work.find(name);
          NEO_CHECK(member != nullptr && value >= 0, Model, "select",
                    "a limit of work must be known and at least 0. Got ", name, "=", value);
          *member = value;
        }
        select::Solution solution;
        {
          const py::gil_scoped_release release;
          if (budget_s) options.deadline = select::deadline_in(*budget_s);
          solution = select::solve(problem, options);
        }
        return solution_of(solution, certify);
      },
      py::arg("sizes"), py::arg("costs"), py::arg("pairs"), py::arg("matrices"), py::arg("resources"),
      py::arg("budget_s") = py::none(), py::arg("certify") = false, py::arg("search_alone") = false,
      py::arg("work") = std::map<std::string, double>(),
      "resources: limit, values of all variables, pairs, values of all pairs; work: see WorkLimits");
  m.def("linear_order", &select::linear_order, py::arg("sizes"), py::arg("pairs"),
        "an order in which a sweep has few variables on its boundary");
}

}  // namespace neo::python
