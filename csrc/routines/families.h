#pragma once

#include "routines/routine.h"

namespace neo {

// One function per family of CPU routines, each in routines/cpu/<family>/.
void add_conv_routines(RoutineTable& table);
void add_gemm_routines(RoutineTable& table);
void add_eltwise_routines(RoutineTable& table);
void add_pool_routines(RoutineTable& table);
void add_reduce_routines(RoutineTable& table);  // reductions, softmax, normalisations
void add_move_routines(RoutineTable& table);    // transpose, concat, slice, pad, gather: data movement and views
void add_resize_routines(RoutineTable& table);
void add_sample_routines(RoutineTable& table);  // planes read at the points of a grid
void add_recurrent_routines(RoutineTable& table);
void add_lrn_routines(RoutineTable& table);
void add_index_routines(RoutineTable& table);      // scatter, gather elements, the largest elements
void add_reference_routines(RoutineTable& table);  // every op's reference, the last resort

}  // namespace neo
