#include "routines/gpu/gemm/gemm.h"

#include "programs.h"
#include "routines/gpu/gemm/tf32_gemm.h"

namespace neo::gpu::tests {
namespace {

GemmForm form_of(const Choice& c) {
  GemmForm form;
  GemmGeometry& g = form.geometry;
  g.transpose_a = c.number("transpose_a", 0) != 0;
  g.transpose_b = c.number("transpose_b", 0) != 0;
  g.a_rank = static_cast<int>(c.number("a_rank", 2));
  g.b_rank = static_cast<int>(c.number("b_rank", 2));
  g.alpha = static_cast<float>(c.number("alpha", 1));
  g.beta = static_cast<float>(c.number("beta", 1));
  form.packs_b = c.number("packs_b", 1) != 0;
  for (int i = 0; i < g.b_rank && form.packs_b; ++i) form.b_dims.push_back(c.number(std::string("b") + "0123456"[i]));
  if (c.number("half", 0) != 0) form.result.storage = DType::Float16;
  form.result.has_bias = c.number("bias", 0) != 0;
  form.result.has_residual = c.number("residual", 0) != 0;
  form.result.has_clamp = c.number("relu", 0) != 0;
  if (form.result.has_clamp) form.result.lo = 0;
  int next = 1;
  if (!form.packs_b) form.b = next++;
  if (form.result.has_residual) form.residual = next++;
  form.c = next;
  return form;
}

const Registered product("gemm", [](const Choice& c) {
  return std::make_unique<GemmProgram>(form_of(c), GemmSchedule::of(c.schedule()));
});

const Registered rounded("gemm_tf32", [](const Choice& c) {
  return std::make_unique<Tf32GemmProgram>(form_of(c), Tf32GemmSchedule::of(c.schedule()));
});

}  // namespace
}  // namespace neo::gpu::tests
