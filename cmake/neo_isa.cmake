# Instruction set tiers and the flags that kernel files are compiled with.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(NEO_ISA_TIERS scalar avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(NEO_ISA_TIERS scalar neon)
else()
  set(NEO_ISA_TIERS scalar)
endif()

set(NEO_ISA "" CACHE STRING "The strongest tier to compile; the weaker ones belong to it. Empty: all of the processor")
if(NEO_ISA)
  list(FIND NEO_ISA_TIERS "${NEO_ISA}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "NEO_ISA must be one of ${NEO_ISA_TIERS}. Got ${NEO_ISA}")
  endif()
  math(EXPR count "${position} + 1")
  list(SUBLIST NEO_ISA_TIERS 0 ${count} NEO_ISA_TIERS)
endif()

set(NEO_ISA_FLAGS_scalar "")
set(NEO_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(NEO_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mprefer-vector-width=512)
set(NEO_ISA_FLAGS_neon "")

# Contraction is off so that every tier and compiler rounds alike; kernels ask for fma where they want it.
set(NEO_KERNEL_FLAGS
    -Wall
    -Wextra
    -fno-exceptions
    -fno-rtti
    -ffp-contract=off
    -fno-math-errno
    -fno-trapping-math
    $<IF:$<CONFIG:Debug>,-Og,-O3>)

# neo_isa_sources(<target> <file>...)
# Compiles each file once per tier, with NEO_ISA=<tier> and NEO_ISA_<TIER> defined, and adds the objects to <target>.
# The objects of a tier lie in the folder <target>_<tier>.dir, where tools/check_isa_symbols.py looks for them.
function(neo_isa_sources target)
  if(NOT ARGN)
    return()
  endif()
  foreach(tier IN LISTS NEO_ISA_TIERS)
    string(TOUPPER "${tier}" tier_upper)
    set(objects "${target}_${tier}")
    add_library(${objects} OBJECT ${ARGN})
    target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/csrc"
                                                  $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${objects} PRIVATE NEO_ISA=${tier} NEO_ISA_${tier_upper}=1)
    target_compile_options(${objects} PRIVATE ${NEO_KERNEL_FLAGS} ${NEO_ISA_FLAGS_${tier}})
    target_link_libraries(${objects} PRIVATE neo_instrumentation)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(TARGET ${target} APPEND PROPERTY NEO_OBJECTS $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
