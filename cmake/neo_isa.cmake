# Instruction set tiers and the flags that kernel files are compiled with.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(NEO_ISA_TIERS scalar avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(NEO_ISA_TIERS scalar neon)
else()
  set(NEO_ISA_TIERS scalar)
endif()

# A runtime for one kind of machine is smaller. A module that was saved for another tier is refused when it is loaded.
set(NEO_ISA "" CACHE STRING "The tiers to compile, for libneo alone; empty: all of the processor")
foreach(tier IN LISTS NEO_ISA)
  if(NOT tier IN_LIST NEO_ISA_TIERS)
    message(FATAL_ERROR "NEO_ISA must be some of ${NEO_ISA_TIERS}. Got ${NEO_ISA}")
  endif()
endforeach()
option(NEO_DEVICES "Devices beside the CPU; OFF for a smaller libneo" ON)
if(NOT NEO_DEVICES AND (NEO_BUILD_PYTHON OR NEO_BUILD_TESTS))
  message(FATAL_ERROR "NEO_DEVICES=OFF is for libneo alone: configure with -DNEO_BUILD_PYTHON=OFF -DNEO_BUILD_TESTS=OFF")
endif()
if(NEO_ISA)
  if(NEO_BUILD_PYTHON OR NEO_BUILD_TESTS)
    message(FATAL_ERROR "NEO_ISA is for libneo alone: configure with -DNEO_BUILD_PYTHON=OFF -DNEO_BUILD_TESTS=OFF")
  endif()
  set(NEO_ISA_TIERS ${NEO_ISA})
endif()

# Few machines run the scalar tier: it is kept small.
set(NEO_ISA_FLAGS_scalar $<$<NOT:$<CONFIG:Debug>>:-Os>)
set(NEO_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(NEO_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mprefer-vector-width=512)
set(NEO_ISA_FLAGS_neon "")

# Contraction is off so that every tier and compiler rounds alike; kernels ask for fma where they want it. No exception
# passes through a kernel, which needs no tables for that.
set(NEO_KERNEL_FLAGS
    -Wall
    -Wextra
    -fno-exceptions
    -fno-asynchronous-unwind-tables
    -fno-rtti
    -ffp-contract=off
    -fno-math-errno
    -fno-trapping-math
    $<IF:$<CONFIG:Debug>,-Og,-O3>)

# Of a source that -O3 makes large for nothing; the scalar tier, which is small already, keeps its flags.
set(NEO_KERNEL_O2 $<$<NOT:$<OR:$<CONFIG:Debug>,$<BOOL:$<TARGET_PROPERTY:NEO_SMALL_TIER>>>>:-O2>)

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
    if(tier STREQUAL scalar)
      set_property(TARGET ${objects} PROPERTY NEO_SMALL_TIER TRUE)
      # Blocks of 1, 2, 4 and 12 rows of a vector, of 1, 2 and 6 of two, 1 and 4 of three, 1 and 3 of four.
      target_compile_definitions(${objects} PRIVATE NEO_TILE_ROWS=0x000A001200461016ull
                                                    NEO_TILE_COLUMNS=0x000A001200461016ull)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(TARGET ${target} APPEND PROPERTY NEO_OBJECTS $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
