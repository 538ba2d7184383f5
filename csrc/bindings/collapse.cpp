#include "select/collapse.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "bindings/bindings.h"

namespace neo::python {
namespace {

using select::Collapse;
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
    NEO_CHECK(count <= static_cast<size_t>(end_ - at_), Model, "select", "a table has a number per choice. Got ",
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
    NEO_CHECK(0 <= u && u < v && v < count, Model, "select", "a pair is of two variables, the lower first. Got (", u,
              ", ", v, "), expected two below ", count);
  };
  std::vector<Reader> vectors{Reader(costs)};
  for (const Resource& r : resources) {
    problem.limits.push_back(r.limit);
    vectors.emplace_back(r.vectors);
  }
  for (int64_t v = 0; v < count; ++v) {
    NEO_CHECK(sizes.data()[v] > 0, Model, "select", "a variable has a choice. Got ", sizes.data()[v], " - at ", v);
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

// (scope, table) on the core's variables.
py::list factors_of(const Collapse& collapse, const std::vector<select::Factor>& factors) {
  py::list out;
  for (const auto& factor : factors) {
    py::tuple scope(factor.scope.size()), shape(factor.scope.size());
    for (size_t i = 0; i < factor.scope.size(); ++i) {
      scope[i] = factor.scope[i];
      shape[i] = collapse.sizes()[static_cast<size_t>(factor.scope[i])];
    }
    out.append(py::make_tuple(scope, array_of(factor.values).attr("reshape")(shape)));
  }
  return out;
}

}  // namespace

void bind_collapse(py::module_& m) {
  py::class_<Collapse>(m, "Collapse", "A selection problem after everything that can be decided exactly and cheaply.")
      .def_property_readonly("allowed", &Collapse::allowed)
      .def_property_readonly("empty", [](const Collapse& c) { return c.reduction().empty(); })
      .def_property_readonly("eliminated", &Collapse::eliminated)
      .def_property_readonly("steps", [](const Collapse& c) { return array_of(c.steps()); })
      .def_property_readonly("core", &Collapse::core)
      .def_property_readonly("sizes", &Collapse::sizes)
      .def_property_readonly("limited", [](const Collapse& c) { return c.reduction().limited(); })
      .def_property_readonly("limits", [](const Collapse& c) { return c.reduction().limits(); })
      .def_property_readonly("constant", &Collapse::constant)
      .def_property_readonly("factors",
                             [](const Collapse& c) {
                               py::list planes;
                               for (const auto& factors : c.factors()) planes.append(factors_of(c, factors));
                               return planes;
                             })
      .def("complete", &Collapse::complete, py::arg("core_choice"));

  m.def(
      "collapse",
      [](const Indices& sizes, const Numbers& costs, const Indices& pairs, const Numbers& matrices,
         const std::vector<std::tuple<double, Numbers, Indices, Numbers>>& resources,
         const std::array<double, 4>& limits) {
        std::vector<Resource> limited;
        for (const auto& [limit, vectors, used, values] : resources) limited.push_back({limit, vectors, used, values});
        Problem problem = problem_of(sizes, costs, pairs, matrices, limited);
        const py::gil_scoped_release release;
        return std::make_unique<Collapse>(std::move(problem),
                                          select::CollapseLimits{limits[0], limits[1], limits[2], limits[3]});
      },
      py::arg("sizes"), py::arg("costs"), py::arg("pairs"), py::arg("matrices"), py::arg("resources"),
      py::arg("limits"), "decides what can be decided exactly and cheaply");
}

}  // namespace neo::python
