"""Small mistakes that ``tools/plant_faults.py`` plants one by one, to see that the tests notice each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """One mistake.

    Attributes
    ----------
    name : str
    file : str
        Below the checkout's root.
    old, new : str
        `old` occurs once in the file and becomes `new`.
    breaks : str
        What is wrong then, in one sentence.
    tests : tuple of str
        The files and functions of tests that should notice.
    cpp : str
        A filter of GoogleTest for the C++ tests that should; empty where there are none.
    builds : tuple of str
        What is built beside the extension module for these tests.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    cpp: str = ""
    builds: tuple[str, ...] = ()


FAULTS = (
    # Kernels of the CPU
    Fault(
        "scalar_tail",
        "csrc/simd/vec_scalar.h",
        "NEO_INLINE void store_n(float* p, F32 x, int64_t n) {\n"
        "  if (n > 0) p[0] = x.v[0];\n  if (n > 1) p[1] = x.v[1];\n  if (n > 2) p[2]",
        "NEO_INLINE void store_n(float* p, F32 x, int64_t n) {\n"
        "  if (n > 0) p[0] = x.v[0];\n  if (n > 1) p[1] = x.v[1];\n  if (n > 3) p[2]",
        "A partial store of three lanes leaves out the last one in the scalar tier.",
        (
            "tests/routines/test_reduce.py::test_softmax",
            "tests/routines/test_reduce.py::test_layer_norms",
        ),
        "*Simd*",
    ),
    Fault(
        "avx2_tail",
        "csrc/simd/vec_avx2.h",
        "_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)",
        "_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 6)",
        "A partial load or store of seven lanes touches the eighth in the AVX2 tier.",
        (
            "tests/routines/test_reduce.py::test_softmax",
            "tests/routines/test_reduce.py::test_layer_norms",
        ),
        "*Simd*",
    ),
    Fault(
        "avx512_tail",
        "csrc/simd/vec_avx512.h",
        "return (__mmask16)((1u << n) - 1u);",
        "return (__mmask16)(__mmask8)((1u << n) - 1u);",
        "A partial load or store of more than eight lanes loses the upper half in the AVX-512 tier.",
        (
            "tests/routines/test_reduce.py::test_softmax",
            "tests/routines/test_reduce.py::test_layer_norms",
        ),
        "*Simd*",
    ),
    Fault(
        "gemm_depth_tail",
        "csrc/routines/cpu/microkernel/tile.isa.cpp",
        "for (int64_t i = t.last_size % kStep / kTogether; i > 0; --i)",
        "for (int64_t i = t.last_size % kStep / kTogether; i > 1; --i)",
        "A matrix product leaves out the last terms of each sum where the depth fills no whole step.",
        ("tests/routines/test_gemm.py::test_matmul_agrees_with_the_reference",),
        "*Gemm*",
    ),
    Fault(
        "gemm_row_bias",
        "csrc/routines/cpu/gemm/gemm_block.cpp",
        "tile.row_bias = args.row_bias + rows.begin;",
        "tile.row_bias = args.row_bias;",
        "All row tiles of a matrix product add the bias of the first one.",
        (
            "tests/routines/test_gemm.py::test_gemm_agrees_with_the_reference",
            "tests/routines/test_conv.py::test_panel_agrees_with_the_reference",
            "tests/routines/test_conv.py::test_direct_nchw_agrees_with_the_reference",
        ),
        "*Gemm*",
    ),
    Fault(
        "direct_conv_tail",
        "csrc/routines/cpu/conv/direct/direct_nchwc.cpp",
        "t.last_size = last_block < blocks ? block_size",
        "t.last_size = last_block <= blocks ? block_size",
        "A direct convolution reads whole channel blocks where the last one is not full.",
        ("tests/routines/test_conv.py::test_direct_nchwc_agrees_with_the_reference",),
        "*DirectConv*",
    ),
    Fault(
        "depthwise_edge",
        "csrc/routines/cpu/conv/depthwise/depthwise.isa.cpp",
        "if (!kInside && (uint64_t)(left + c) >= (uint64_t)p.iw) continue;",
        "if (!kInside && (uint64_t)(left + c) > (uint64_t)p.iw) continue;",
        "A depthwise convolution takes the first element of the next row for one of the padding.",
        ("tests/routines/test_conv.py::test_depthwise_agrees_with_the_reference",),
        "*DepthwiseConv*",
    ),
    Fault(
        "winograd_tail",
        "csrc/routines/cpu/conv/winograd/winograd.isa.cpp",
        "if (i >= t.end) break;",
        "if (i > t.end) break;",
        "The output transform of Winograd writes a row or column behind the end of the image.",
        (
            "tests/routines/test_winograd.py::test_agrees_with_the_reference",
            "tests/routines/test_winograd.py::test_lanes_beyond_the_channels_stay_zero",
            "tests/routines/test_winograd.py::test_sizes_may_be_symbols",
        ),
    ),
    Fault(
        "strassen_odd",
        "csrc/routines/cpu/gemm/strassen.cpp",
        "return {pixels.begin, half, pixels.size() - half};",
        "return {pixels.begin, half, half};",
        "Strassen's product reads a pixel beyond a run of an odd number of pixels.",
        ("tests/routines/test_strassen.py::test_numbers_of_pixels_that_runs_do_not_divide",),
    ),
    Fault(
        "pool_count",
        "csrc/routines/cpu/pool/pool.isa.cpp",
        "t.count = include_pad ? below(a.padded - a.pad)",
        "t.count = include_pad ? below(a.padded)",
        "An average pool that counts padding also counts what lies behind it.",
        (
            "tests/routines/test_pool.py::test_gives_what_the_reference_gives",
            "tests/routines/test_pool.py::test_small_square_windows",
        ),
    ),
    Fault(
        "recurrent_reverse",
        "csrc/routines/cpu/recurrent/recurrent_step.cpp",
        "const bool reverse = form_.reverse || direction == 1;\n    const int64_t at =",
        "const bool reverse = direction == 1;\n    const int64_t at =",
        "A recurrent operator of direction reverse runs forwards.",
        (
            "tests/routines/test_recurrent.py::test_gives_what_the_reference_gives",
            "tests/routines/test_recurrent.py::test_products_by_strassens_algorithm",
        ),
    ),
    Fault(
        "reduce_tail",
        "csrc/routines/cpu/reduce/reduce.isa.cpp",
        "if (i < n) b = combine<kind>(b, load_rest<kind>(x + i, n - i));",
        "if (i < n) b = combine<kind>(b, load_n(x + i, n - i));",
        "A maximum over a row that fills no whole vector is at least zero.",
        ("tests/routines/test_reduce.py::test_reductions",),
    ),
    Fault(
        "softmax_columns",
        "csrc/routines/cpu/reduce/reduce.isa.cpp",
        "      top = max_nan(top, v);",
        "      if (i > 0) top = max_nan(top, v);",
        "A softmax over an outer axis does not see the first element when it looks for the largest.",
        ("tests/routines/test_reduce.py::test_softmax",),
    ),
    Fault(
        "norm_epsilon",
        "csrc/routines/cpu/reduce/reduce.isa.cpp",
        "const float inverse = 1.0f / sqrtf(variance + args.epsilon);",
        "const float inverse = 1.0f / (sqrtf(variance) + args.epsilon);",
        "A normalization adds epsilon to the deviation in place of the variance.",
        (
            "tests/routines/test_reduce.py::test_layer_norms",
            "tests/routines/test_reduce.py::test_channel_norms",
        ),
    ),
    Fault(
        "resize_coordinates",
        "csrc/ops/resize.cpp",
        "return a.output > 1 ? (x + 0.5) / a.scale - 0.5 : 0;",
        "return (x + 0.5) / a.scale - 0.5;",
        "Coordinates pytorch_half_pixel of one output element are those of half_pixel.",
        (
            "tests/ops/test_resize.py",
            "tests/routines/test_resize.py::test_gives_what_the_reference_gives",
        ),
    ),
    Fault(
        "gather_negative",
        "csrc/routines/cpu/move/gather.cpp",
        "if (i < 0) i += size.value();",
        "if (i < 0) i += size.value() - 1;",
        "A negative constant index of Gather picks the element before the one it means.",
        ("tests/routines/test_move.py::test_gather",),
    ),
    Fault(
        "top_k_ties",
        "csrc/routines/cpu/index/top_k.cpp",
        "at > 0 && candidate.key < kept[at - 1].key; --at)",
        "at > 0 && candidate.key <= kept[at - 1].key; --at)",
        "TopK gives equal elements in the opposite order.",
        ("tests/routines/test_top_k.py::test_largest_elements",),
    ),
    Fault(
        "lrn_window",
        "csrc/routines/cpu/lrn/lrn.isa.cpp",
        "end = smaller(args.channels, c + args.after + 1);",
        "end = smaller(args.channels, c + args.after);",
        "An LRN of a plain layout leaves out the last channel of each window.",
        ("tests/routines/test_lrn.py::test_gives_what_the_reference_gives",),
    ),
    # Layouts and views
    Fault(
        "layout_swapped",
        "csrc/routines/adapt/layout.cpp",
        "p.dst_row = t.pads ? t.block : t.span;",
        "p.dst_row = t.pads ? t.span : t.block;",
        "A copy between the plain and the blocked layout takes the one's row for the other's.",
        ("tests/routines/test_move.py::test_channel_blocks_and_back",),
    ),
    Fault(
        "slice_view",
        "csrc/routines/cpu/move/view.cpp",
        'if (r.step != 1) return "the step is not 1";',
        'if (r.step < 1) return "the step is not 1";',
        "A slice with a step becomes a view of neighbouring elements.",
        ("tests/routines/test_views.py::test_what_a_view_cannot_be",),
    ),
    Fault(
        "transpose_view",
        "csrc/routines/cpu/move/view.cpp",
        "  return std::is_sorted(kept.begin(), kept.end());",
        "  return kept.size() <= 2 || std::is_sorted(kept.begin(), kept.end());",
        "A transposed matrix becomes a view that is not transposed.",
        ("tests/routines/test_views.py::test_what_a_view_cannot_be",),
    ),
    Fault(
        "concat_offset",
        "csrc/routines/cpu/move/view.cpp",
        "offset = offset + v->shape().element_count();",
        "offset = offset + v->shape()[axis];",
        "Pieces of a Concat that are written in place lie over each other.",
        ("tests/routines/test_views.py::test_pieces_of_a_concatenation_lie_one_behind_the_other",),
    ),
    # Memory, plans, threads
    Fault(
        "shared_memory",
        "csrc/exec/plan_memory.cpp",
        "    if (outlives[i]) continue;\n",
        "",
        "A buffer that is read after its region shares bytes with one that is written there.",
        ("tests/runtime/test_memory_plan.py",),
    ),
    Fault(
        "lost_dependency",
        "csrc/exec/dependencies.cpp",
        "    append(uses.reads, loop.captured);\n",
        "",
        "The memory of what a loop's body reads from outside is taken for others before the loop runs.",
        ("tests/runtime/test_memory_plan.py",),
    ),
    Fault(
        "write_over",
        "csrc/exec/binding.cpp",
        "const bool may = call.spec->in_place == static_cast<int>(i) && from.begin",
        "const bool may = from.begin",
        "A loaded plan may let a step write over an input that its routine does not allow.",
        ("tests/saved/test_damage.py::test_a_step_that_writes_over_its_input_is_refused",),
    ),
    Fault(
        "binding_key",
        "csrc/exec/binding.cpp",
        "e.binding->symbols == symbols && e.binding->growths == growths;",
        "e.binding->symbols.size() == symbols.size() && e.binding->growths == growths;",
        "A call takes the offsets and sizes of an earlier call with other sizes.",
        (
            "tests/api/test_memory.py",
            "tests/api/test_async.py::test_eight_threads_with_shapes_of_their_own_get_their_own_results",
        ),
    ),
    Fault(
        "size_guard",
        "csrc/exec/binding.cpp",
        "      holds = a <= b;\n",
        "      holds = a <= b + 1;\n",
        "A size that must not be larger than another may be larger by one.",
        ("tests/errors/test_size_guards.py",),
    ),
    Fault(
        "pool_wait",
        "csrc/runtime/thread_pool.cpp",
        "for (int i = 1; i < parts_; ++i) workers_[static_cast<size_t>(i) - 1]->revoke_or_wait(spin_us());",
        "for (int i = 1; i < parts_ - 1; ++i) workers_[static_cast<size_t>(i) - 1]->revoke_or_wait(spin_us());",
        "A team does not wait for its last member.",
        (),
        "*ThreadPool*:*PhasedRun*",
    ),
    Fault(
        "phase_wait",
        "csrc/runtime/phased_run.cpp",
        "    const int64_t all_done = (phase + 1) * parts_;\n"
        "    for (int looks = 1; done_.load(std::memory_order_acquire) < all_done; ++looks) {\n"
        "      if (looks % kLooksBetweenHelp == 0) help_others(phase, member, looks >= kPatientLooks);\n"
        "      if (looks >= kPatientLooks)\n"
        "        sched_yield();\n"
        "      else\n"
        "        pause_briefly();\n"
        "    }\n"
        "    phase = done_.load(std::memory_order_acquire) / parts_;\n",
        "    ++phase;\n",
        "A member begins a phase before the last one of the phase before has ended.",
        (),
        "*ThreadPool*:*PhasedRun*",
    ),
    Fault(
        "cancel_flag",
        "csrc/runtime/run.cpp",
        "state.budget->start(interpreter_->arena_bytes(), &state.cancelled, poll);",
        "state.budget->start(interpreter_->arena_bytes(), nullptr, poll);",
        "A call that is cancelled goes on to its end.",
        (
            "tests/api/test_async.py::test_cancel_ends_a_call_that_runs",
            "tests/runtime/test_loop.py::test_a_long_loop_runs_until_the_call_is_cancelled",
        ),
    ),
    Fault(
        "scan_reverse",
        "csrc/runtime/loop.cpp",
        "axis.reverse ? trips - 1 - i : i));",
        "axis.reverse ? trips - i : i));",
        "A Scan that reads backwards begins behind the end.",
        ("tests/frontend/test_older_opsets.py::test_scan_over_a_batch",),
    ),
    # Selection and tuning
    Fault(
        "database_threads",
        "python/neo/tune/database.py",
        'query = "SELECT id FROM contexts WHERE machine = ? AND kernels = ? AND target = ? AND threads = ?"',
        'query = "SELECT id FROM contexts WHERE machine = ? AND kernels = ? AND target = ? AND threads >= ?"',
        "Times measured with more threads count as those of fewer.",
        ("tests/tune/test_database.py::test_another_context_has_times_of_its_own",),
    ),
    Fault(
        "solver_prunes",
        "csrc/select/levels.cpp",
        "total[s] < beat - objective.offset",
        "total[s] < beat + objective.offset",
        "The search drops choices that are better than the best known one where limits have prices.",
        (
            "tests/select/test_solver.py::test_generated_problems",
            "tests/select/test_solver.py::test_dense_problems_are_searched",
            "tests/select/test_certificate.py::test_bounds_of_searches_are_proven",
        ),
        "Solve.*",
    ),
    Fault(
        "solver_merges",
        "csrc/select/levels.cpp",
        "key[s] = key[s] * sizes_[u] + columns_[u][s]",
        "key[s] = key[s] + columns_[u][s]",
        "The search keeps one of several partial choices that differ where it matters.",
        (
            "tests/select/test_solver.py::test_generated_problems",
            "tests/select/test_solver.py::test_dense_problems_are_searched",
            "tests/select/test_certificate.py::test_bounds_of_searches_are_proven",
        ),
        "Solve.*",
    ),
    Fault(
        "false_proof",
        "csrc/select/search.cpp",
        "best_.complete = !found.dropped || is_closed();",
        "best_.complete = true;",
        "A search that dropped choices says that it has proven the best one.",
        (
            "tests/select/test_solver.py::test_generated_problems",
            "tests/select/test_solver.py::test_dense_problems_are_searched",
            "tests/select/test_certificate.py::test_bounds_of_searches_are_proven",
        ),
        "Solve.*",
    ),
    # Sizes and inference
    Fault(
        "ceil_division",
        "csrc/ir/dim.cpp",
        "if (b.range().lo >= 1) return floordiv(a + (b - 1), b);",
        "if (b.range().lo >= 1) return floordiv(a + b, b);",
        "A symbolic quotient rounded up is one too large where it divides.",
        ("tests/ops/test_pool.py",),
        "Dim*",
    ),
    Fault(
        "size_range",
        "csrc/ir/dim_value.cpp",
        "std::max<int64_t>(b.hi - 1, 0);",
        "std::max<int64_t>(b.hi - 2, 0);",
        "The range of a remainder ends one too low.",
        ("tests/ir/test_sizes.py",),
        "Dim*",
    ),
    Fault(
        "pool_inference",
        "csrc/ops/window.cpp",
        "return smaller(ceildiv(free, stride) + 1, ceildiv(input + begin, stride));",
        "return ceildiv(free, stride) + 1;",
        "A pool with ceil_mode has a window that begins in the padding at the end.",
        ("tests/ops/test_pool.py",),
    ),
    Fault(
        "quantize_rounding",
        "csrc/ops/quantize.cpp",
        "const double code = std::nearbyint(steps) + zero_point;",
        "const double code = std::round(steps) + zero_point;",
        "QuantizeLinear rounds halves away from zero.",
        ("tests/ops/test_quantize.py",),
    ),
    Fault(
        "lost_message",
        "csrc/exec/binding.cpp",
        'NEO_CHECK(holds, Shape, "run", guard.message, ". Got ", guard.left',
        'NEO_CHECK(holds, Shape, "run", "Got ", guard.left',
        "An error of a call's sizes does not say which rule they break.",
        ("tests/errors/test_size_guards.py",),
    ),
    # Passes
    Fault(
        "fold_pads",
        "csrc/passes/fold_pads.cpp",
        "pads[i + axes] += pad.ends[i + 2];",
        "pads[i + axes] += pad.begins[i + 2];",
        "A Pad that is folded into a convolution pads both ends like the first.",
        ("tests/passes/test_fold_pads.py",),
    ),
    Fault(
        "fold_batch_norm",
        "csrc/passes/fold_batch_norms.cpp",
        "const double scale = p[0][c] / std::sqrt(p[3][c] + epsilon);",
        "const double scale = p[0][c] / (std::sqrt(p[3][c]) + epsilon);",
        "A folded batch normalization adds epsilon to the deviation.",
        ("tests/passes/test_folds_into_linear.py",),
    ),
    Fault(
        "sink_transpose",
        "csrc/passes/transposes.cpp",
        "turned[axis + x.perm.size()] = (*pads)[i + x.perm.size()];",
        "turned[axis + x.perm.size()] = (*pads)[axis + x.perm.size()];",
        "A Transpose that moves behind a Pad leaves the pads at the ends where they were.",
        ("tests/passes/test_eliminate_transposes.py",),
    ),
    Fault(
        "merge_attributes",
        "csrc/passes/merge_common_nodes.cpp",
        "return x.first == y.first && identical(x.second, y.second);",
        "return x.first == y.first;",
        "Nodes that differ in an attribute become one.",
        ("tests/passes/test_clean_up.py",),
    ),
    # Files
    Fault(
        "softmax_axis",
        "python/neo/frontend/onnx/activations.py",
        'axis = int(call.attrs.get("axis", 1))',
        'axis = int(call.attrs.get("axis", -1))',
        "A Softmax below opset 13 takes the default axis of opset 13.",
        ("tests/frontend/test_older_opsets.py::test_softmax_default_axes",),
    ),
    Fault(
        "saved_range",
        "csrc/saved/load.cpp",
        "    for (const auto& [name, symbol] : symbols_) check_range(symbol);\n",
        "",
        "A saved module may take sizes that it was not planned for.",
        ("tests/saved/test_damage.py",),
    ),
    Fault(
        "saved_scan",
        "csrc/exec/block_flow.cpp",
        "NEO_CHECK(item.scanned.size() == item.scanned_axes.size(), Model",
        "NEO_CHECK(item.scanned.size() >= item.scanned_axes.size(), Model",
        "A saved loop may have fewer axes than scanned inputs.",
        ("tests/saved/test_damage.py",),
    ),
    Fault(
        "saved_operand",
        "csrc/saved/operands.cpp",
        "  for (size_t i = 0; i < item.inputs.size(); ++i) check_operand(slot(item.inputs[i]), made.reads[i], is_host, false);\n",
        "",
        "A saved step may read a slot of another type or layout than its routine takes.",
        ("tests/saved/test_damage.py",),
    ),
    # The faces
    Fault(
        "released_handle",
        "csrc/capi/handles.h",
        "        objects_.erase(it);\n",
        "",
        "The C face goes on taking a handle that was released, and never gives its memory back.",
        ("tests/capi/test_face.py::test_only_live_handles_of_their_type_are_taken",),
        builds=("neo", "neo_static"),
    ),
    Fault(
        "strided_input",
        "csrc/bindings/arrays.cpp",
        "constexpr int kDense = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};",
        "constexpr int kDense = int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};",
        "An array that is not contiguous is read as if it were.",
        ("tests/api/test_module.py::test_whatever_holds_the_elements_is_taken",),
    ),
    Fault(
        "strided_value",
        "csrc/capi/values.cpp",
        "if (dims[axis] != 1 && value.strides[axis] != stride) return false;",
        "if (dims[axis] != 1 && value.strides[axis] < stride) return false;",
        "The C face reads a tensor whose rows lie apart as if they did not.",
        ("tests/capi/test_face.py::test_strides_are_followed",),
        builds=("neo", "neo_static"),
    ),
    Fault(
        "command_output",
        "python/neo/cli/run.py",
        'f"{x.max():.6g}" if numeric else "")',
        'f"{x.min():.6g}" if numeric else "")',
        "The command run prints the smallest element as the largest.",
        ("tests/api/test_cli.py::test_run_prints_the_smallest_and_the_largest_element",),
    ),
    # Kernels of GPUs
    Fault(
        "kernel_text",
        "csrc/kernel_ir/print_expr.cpp",
        'return {"%", 12};',
        'return {"%", 13};',
        "The text of a kernel leaves out parentheses around a remainder.",
        (
            "tests/kernel_ir/test_print.py::test_printed_text_is_the_golden",
            "tests/kernel_ir/test_kernels.py",
        ),
        builds=("_kernels",),
    ),
    Fault(
        "kernel_vectors",
        "csrc/kernel_ir/vectorize.cpp",
        "return e->op == Op::Add ? *a + *b : *a - *b;",
        "return *a + *b;",
        "A vector loop takes an index that falls for one that rises.",
        (
            "tests/kernel_ir/test_print.py::test_printed_text_is_the_golden",
            "tests/kernel_ir/test_kernels.py",
        ),
        builds=("_kernels",),
    ),
)
