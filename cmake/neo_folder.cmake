# What every target of neo is compiled with.

find_package(Threads REQUIRED)

# Sanitizers and coverage: kernels and everything else alike.
add_library(neo_instrumentation INTERFACE)
if(NEO_SANITIZE)
  target_compile_options(neo_instrumentation INTERFACE -fsanitize=${NEO_SANITIZE} -fno-sanitize-recover=all
                                                       -fno-omit-frame-pointer -g1)
  target_link_options(neo_instrumentation INTERFACE -fsanitize=${NEO_SANITIZE})
endif()
if(NEO_COVERAGE)
  target_compile_options(neo_instrumentation INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(neo_instrumentation INTERFACE --coverage)
endif()

# NEO_HAVE_<TIER>=1 says that the tier's kernels are in this build.
add_library(neo_options INTERFACE)
target_compile_options(neo_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -ffunction-sections
                                             -fdata-sections)
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
    set_property(GLOBAL PROPERTY NEO_PRECOMPILED_${options} ${target})
  endif()
endfunction()

# neo_folder(<name> [SMALL [CALLED <file>...]] [SMALL_FILES <regex>...] [DEPENDS <name>...])
# Target neo_<name> of csrc/<name>: *.isa.cpp once per tier, every other *.cpp once. Without sources it is an
# INTERFACE target, so a folder may hold headers only or nothing yet.
# SMALL: compiled for size, all but the CALLED files, which calls of usual models pass through. SMALL_FILES: those whose
# path in the folder matches one of these.
function(neo_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SMALL" "" "CALLED;SMALL_FILES;DEPENDS")
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
  if(arg_SMALL_FILES)
    list(JOIN arg_SMALL_FILES "|" small)
    set(small_sources ${sources})
    list(FILTER small_sources INCLUDE REGEX "^${folder}/(${small})$")
    list(REMOVE_ITEM sources ${small_sources})
    add_library(${target}_small OBJECT ${small_sources})
    target_include_directories(${target}_small PRIVATE "${PROJECT_SOURCE_DIR}/csrc")
    target_link_libraries(${target}_small PRIVATE neo_options)
    target_compile_options(${target}_small PRIVATE ${NEO_SMALL_FLAGS})
    neo_precompile(${target}_small small)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_small>)
    set_property(TARGET ${target} APPEND PROPERTY NEO_OBJECTS $<FILTER:$<TARGET_OBJECTS:${target}_small>,EXCLUDE,gch$>)
  endif()
  if(sources)
    target_sources(${target} PRIVATE ${sources})
    if(arg_SMALL)
      list(TRANSFORM arg_CALLED REPLACE ".+" "${folder}/\\0.cpp")
      set_source_files_properties(${arg_CALLED} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>"
                                                           SKIP_PRECOMPILE_HEADERS ON)
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
