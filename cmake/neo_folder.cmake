# What every target of neo is compiled with.

find_package(Threads REQUIRED)

# Sanitizers and coverage: kernels and everything else alike.
add_library(neo_instrumentation INTERFACE)
if(NEO_SANITIZE)
  target_compile_options(neo_instrumentation INTERFACE -fsanitize=${NEO_SANITIZE} -fno-sanitize-recover=all
                                                       -fno-omit-frame-pointer -g1 -gz)
  target_link_options(neo_instrumentation INTERFACE -fsanitize=${NEO_SANITIZE})
endif()
if(NEO_COVERAGE)
  target_compile_options(neo_instrumentation INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(neo_instrumentation INTERFACE --coverage)
endif()

# NEO_HAVE_<TIER>=1 says that the tier's kernels are in this build.
add_library(neo_options INTERFACE)
# Contraction is off in kernels (neo_isa.cmake), and so it is in the references that have to give their bits.
target_compile_options(neo_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -ffunction-sections
                                             -fdata-sections -ffp-contract=off)
foreach(tier IN LISTS NEO_ISA_TIERS)
  string(TOUPPER "${tier}" tier_upper)
  target_compile_definitions(neo_options INTERFACE NEO_HAVE_${tier_upper}=1)
endforeach()
if(NOT NEO_DEVICES)
  target_compile_definitions(neo_options INTERFACE NEO_WITHOUT_DEVICES)
endif()
target_link_libraries(neo_options INTERFACE neo_instrumentation Threads::Threads)
if(NEO_BUILD_FUZZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libFuzzer looks at the branches of everything but kernels, which take no decision by their data.
  target_compile_options(neo_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What is off the path of a call is compiled for size.
set(NEO_SMALL_FLAGS $<$<CONFIG:Release>:-Os>)

# A launcher of somebody else's may not hold them.
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT NEO_CCACHE_LAUNCHES)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(NEO_PRECOMPILE "Read the standard headers once for all sources of the same options" ${precompile})

# neo_precompile(<target> <options> [<header>...]): <options> names what the target is compiled with; the first one that
# comes with it makes the headers for all, these among them.
function(neo_precompile target options)
  get_property(owner GLOBAL PROPERTY NEO_PRECOMPILED_${options})
  set_property(TARGET ${target} PROPERTY DEFINE_SYMBOL "")  # else every module has a definition of its own
  if(NOT NEO_PRECOMPILE)
    return()
  elseif(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/standard_headers.h" ${ARGN})
    if(NEO_CCACHE_LAUNCHES)
      neo_sum_precompiled(${target} ${ARGN})
    endif()
    set_property(GLOBAL PROPERTY NEO_PRECOMPILED_${options} ${target})
  endif()
endfunction()

# Reading the standard headers and instantiating their templates takes longer than compiling what most sources hold, so
# several sources of a folder are compiled together. Names of unnamed namespaces are unique in a folder for that
# (tools/check_names.py). OFF recompiles less after a change to one file.
option(NEO_UNITY "Compile several sources of a folder together" ON)

set(NEO_UNITY_COUNT 20)

# neo_unity(<target> <count>): up to so many sources together; not those that have options of their own.
function(neo_unity target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${NEO_UNITY} UNITY_BUILD_BATCH_SIZE ${count}
                                             UNITY_BUILD_RELOCATABLE ON)
endfunction()

# neo_objects(<target> <part> <source>...): objects neo_<name>_<part> that belong to a folder's target.
function(neo_objects target part)
  add_library(${target}_${part} OBJECT ${ARGN})
  target_include_directories(${target}_${part} PRIVATE "${PROJECT_SOURCE_DIR}/csrc")
  target_link_libraries(${target}_${part} PRIVATE neo_options)
  neo_unity(${target}_${part} ${NEO_UNITY_COUNT})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${part}>)
  set_property(TARGET ${target} APPEND PROPERTY NEO_OBJECTS
               $<FILTER:$<TARGET_OBJECTS:${target}_${part}>,EXCLUDE,gch$>)
endfunction()

# neo_take(<variable> <folder> <regex>...): moves those of `sources` whose path in the folder matches to the variable. The
# expressions stay apart from each other and from the folder: CMake 3.25 takes no more than nine parentheses in one, and
# a checkout may lie where the path has signs that mean something in expressions.
function(neo_take variable folder)
  set(taken)
  set(left)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH path "${folder}" "${source}")
    set(list left)
    foreach(regex IN LISTS ARGN)
      if(path MATCHES "^(${regex})$")
        set(list taken)
      endif()
    endforeach()
    list(APPEND ${list} "${source}")
  endforeach()
  set(${variable} "${taken}" PARENT_SCOPE)
  set(sources "${left}" PARENT_SCOPE)
endfunction()

# neo_small_objects(<target> <part> <regex>...): takes from `sources` those whose path in `folder` matches, and compiles
# them for size.
macro(neo_small_objects target part)
  neo_take(small_sources "${folder}" ${ARGN})
  neo_objects(${target} ${part} ${small_sources})
  target_compile_options(${target}_${part} PRIVATE ${NEO_SMALL_FLAGS})
  neo_precompile(${target}_${part} small)
endmacro()

# neo_folder(<name> [SMALL [CALLED <file>...]] [SMALL_FILES <regex>...] [SMALL_FOLDERS <folder>...] [DEPENDS <name>...])
# Target neo_<name> of csrc/<name>: *.isa.cpp once per tier, every other *.cpp once. Without sources it is an
# INTERFACE target, so a folder may hold headers only or nothing yet.
# SMALL: compiled for size, all but the CALLED files, which calls of usual models pass through. SMALL_FILES: those whose
# path in the folder matches one of these. SMALL_FOLDERS: all files of these, in objects of their own, neo_<name>_<folder>.
function(neo_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SMALL" "" "CALLED;SMALL_FILES;SMALL_FOLDERS;DEPENDS")
  set(folder "${PROJECT_SOURCE_DIR}/csrc/${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  set(isa_sources ${sources})
  list(FILTER isa_sources INCLUDE REGEX "\\.isa\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.isa\\.cpp$")
  list(TRANSFORM arg_DEPENDS PREPEND "neo_")

  set(target "neo_${name}")
  if(sources OR isa_sources)
    add_library(${target} STATIC)
    set_property(TARGET ${target} PROPERTY NEO_OBJECTS $<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,gch$>)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/csrc")
  target_link_libraries(${target} ${scope} neo_options ${CMAKE_DL_LIBS} ${arg_DEPENDS})
  foreach(small_folder IN LISTS arg_SMALL_FOLDERS)
    neo_small_objects(${target} ${small_folder} "${small_folder}/.*")
  endforeach()
  if(arg_SMALL_FILES)
    neo_small_objects(${target} small ${arg_SMALL_FILES})
  endif()
  if(arg_CALLED)
    list(TRANSFORM arg_CALLED APPEND "\\.cpp")
    neo_take(called_sources "${folder}" ${arg_CALLED})
    neo_objects(${target} called ${called_sources})
    neo_precompile(${target}_called fast)
  endif()
  if(sources)
    target_sources(${target} PRIVATE ${sources})
    neo_unity(${target} ${NEO_UNITY_COUNT})
    if(arg_SMALL)
      target_compile_options(${target} PRIVATE ${NEO_SMALL_FLAGS})
      neo_precompile(${target} small)
    else()
      neo_precompile(${target} fast)
    endif()
  endif()
  if(isa_sources)
    neo_isa_sources(${target} ${isa_sources})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()
