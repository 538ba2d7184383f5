#include "kernels.h"

#include "base/check.h"
#include "kernel_ir/builder.h"

namespace neo::kernel::examples {

const Table& all() {
  static const Table table = [] {
    Table t;
    for (const Kernel& k : {gemm_registers("gemm_6x4x16", 6, 4, 16),
                            gemm_registers("gemm_6x2x8", 6, 2, 8),
                            gemm_local(),
                            scan_blocks(),
                            scan_totals(),
                            scan_add(),
                            sort_blocks(),
                            sort_merge(),
                            conv_subgroup(),
                            softmax_subgroup(),
                            eltwise_vector(),
                            mirror_vector(),
                            repeat_strided(),
                            gather_rows(),
                            histogram(),
                            gemm_matrices(),
                            round_to_tf32(),
                            image_blur(),
                            dot_bytes(),
                            scale_codes()}) {
      t.emplace(k.name, k);
    }
    for (const char* name : {"gemm_6x2x8", "conv_subgroup", "softmax_subgroup", "mirror_vector"}) {
      for (const DType storage : {DType::Float16, DType::BFloat16}) {
        const Kernel half = with_storage(t.at(name), storage);
        t.emplace(half.name, half);
      }
    }
    for (const DType storage : {DType::Float16, DType::BFloat16}) {
      const Kernel k = round_to_half(storage);
      t.emplace(k.name, k);
    }
    return t;
  }();
  return table;
}

void build_wrong(const std::string& name) {
  Builder b("wrong");
  const Expr n = b.size("n", 1, 1000);
  const Array x = b.input("x", DType::Float32, n), y = b.output("y", DType::Float32, n);
  const Array texels = b.image("texels", n);
  const Expr g = b.group(0, "g", n), l = b.local(0, "l", 16);
  const Array tile = b.shared("tile", DType::Float32, 16);
  using Wrong = std::map<std::string, std::function<void()>>;
  const Wrong wrong = {
      {"read beyond the end", [&] { y[g] = x[g + 1]; }},
      {"read before the start", [&] { y[g] = x[g - 1]; }},
      {"vector across the end", [&] { y.at(g, 4) = x.at(g, 4); }},
      {"guard of another index", [&] { b.when(g + 1 < n, [&] { y[g] = x[g + 2]; }); }},
      {"guard of the other branch",
       [&] {
         b.when(
             g + 1 < n, [&] {}, [&] { y[g] = x[g + 1]; });
       }},
      {"guard already over",
       [&] {
         b.when(g + 1 < n, [&] { y[g] = 0.0f; });
         y[g + 1] = 0.0f;
       }},
      {"index from memory", [&] { y[g] = x[cast(x[g], DType::Int32)]; }},
      {"local memory's end", [&] { tile[l + 1] = 0.0f; }},
      {"barrier under a thread's condition", [&] { b.when(l < 8, [&] { b.barrier(); }); }},
      {"barrier in a thread's loop", [&] { b.loop("i", 0, l, [&](Expr) { b.barrier(); }); }},
      {"barrier under what local memory says", [&] { b.when(tile[0] < 1.0f, [&] { b.barrier(); }); }},
      {"write to an input", [&] { x[g] = 0.0f; }},
      {"texel beyond the end", [&] { y[g] = lane(texels[g + 1], 0); }},
      {"texels by the vector", [&] { y[g] = lane(texels.at(g, 4), 0); }},
      {"write to an image", [&] { texels[g] = broadcast(x[g], 4); }},
      {"atomic on an image", [&] { texels.atomic(AtomicOp::Add, g, texels[g]); }},
      {"block read of an image",
       [&] {
         b.subgroups(16);
         b.when(n >= 64, [&] { y[g] = texels.block_read(0); });
       }},
      {"read of an output", [&] { y[g] = y[g] + 1.0f; }},
      {"atomic on a register", [&] { b.registers("r", kInt, 1).atomic(AtomicOp::Add, 0, 1); }},
      {"shuffle without subgroups", [&] { y[g] = b.shuffle(x[g], 0); }},
      {"shuffle beyond the subgroup",
       [&] {
         b.subgroups(16);
         y[g] = b.shuffle(x[g], l + 1);
       }},
      {"matrices of a small subgroup",
       [&] {
         b.subgroups(16);
         const Expr four = broadcast(x[g], 4);
         b.multiply_matrices(four, broadcast(x[g], 2), four);
       }},
      {"matrices that are too wide",
       [&] {
         const Expr four = broadcast(x[g], 4);
         b.local(0, "wide", 32);
         b.subgroups(32);
         b.multiply_matrices(four, four, four);
       }},
      {"matrices under a thread's condition",
       [&] {
         const Expr four = broadcast(x[g], 4);
         const Expr thread = b.local(0, "wide", 32);
         b.subgroups(32);
         b.when(thread < 8, [&] { b.multiply_matrices(four, broadcast(x[g], 2), four); });
       }},
      {"floats as words of bytes", [&] { y[g] = cast(dot4(x[g], x[g], x[g]), DType::Float32); }},
      {"integers to tf32", [&] { y[g] = make(Op::ToTf32, {l}); }},
      {"block read that differs",
       [&] {
         b.subgroups(16);
         b.when(n >= 64, [&] { y[g] = x.block_read(l); });
       }},
      {"types",
       [&] {
         y[g] = make(Op::Add, {x[g], Expr(g)});
       }},
      {"value of another type", [&] { y[g] = g; }},
      {"division by what may be zero", [&] { y[g / l] = 0.0f; }},
      {"variable out of its scope",
       [&] {
         Expr leaked;
         b.loop("i", 0, n, [&](Expr i) { leaked = i; });
         y[min(leaked, n - 1)] = 0.0f;
       }},
      {"index beyond 32 bits", [&] { y[(g * 1000 * 1000 * 1000) / 1000 / 1000 / 1000] = 0.0f; }},
  };
  const auto found = wrong.find(name);
  std::string names;
  for (const auto& [known, build] : wrong) names += (names.empty() ? "" : "; ") + known;
  NEO_CHECK(found != wrong.end(), Model, "kernels", "the mistake must be known. Got '", name, "', expected one of ",
            names);
  found->second();
  b.finish();
}

}  // namespace neo::kernel::examples
