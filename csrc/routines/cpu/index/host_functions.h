#pragma once

#include "exec/team.h"
#include "ops/op.h"

// Functions that the routine cpu/index runs, each for the operator of its name.

namespace neo {

void run_affine_grid(ReferenceContext& ctx);
void run_class_loss(ReferenceContext& ctx);
void run_col2im(ReferenceContext& ctx, Team& team);
void run_compress(ReferenceContext& ctx);
void run_gather_elements(ReferenceContext& ctx);
void run_max_roi_pool(ReferenceContext& ctx, Team& team);
void run_max_unpool(ReferenceContext& ctx);
void run_non_max_suppression(ReferenceContext& ctx);
void run_non_zero(ReferenceContext& ctx);
void run_range(ReferenceContext& ctx);
void run_reverse_sequence(ReferenceContext& ctx);
void run_roi_align(ReferenceContext& ctx);
void run_scatter_elements(ReferenceContext& ctx);
void run_unique(ReferenceContext& ctx);
void run_window(ReferenceContext& ctx);

}  // namespace neo
