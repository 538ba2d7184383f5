# Objects are kept by ccache where it is installed, for every checkout and every build alike: paths in commands and
# objects are relative to the checkout, and precompiled headers are held too. NEO_CCACHE=OFF leaves it out.

option(NEO_CCACHE "Compile through ccache where it is installed" ON)
find_program(NEO_CCACHE_PROGRAM ccache)
if(NOT NEO_CCACHE OR NOT NEO_CCACHE_PROGRAM OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()

set(NEO_CCACHE_LAUNCHES ON)
set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${NEO_CCACHE_PROGRAM}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Without it ccache cannot tell what a precompiled header was made from.
  add_compile_options(-fpch-preprocess)
endif()
# Debug information, names in checks and those of tests' sources name the checkout relative to itself.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")

# neo_sum_precompiled(<target> <header>...): two compilations of the same headers differ in their bytes, and with them
# every object would be another one to ccache, which reads this sum of what the headers hold instead.
function(neo_sum_precompiled target)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -E -P "${PROJECT_SOURCE_DIR}/cmake/standard_headers.h"
                  OUTPUT_VARIABLE text ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${text} ${ARGN} ${pybind11_VERSION} ${Python_VERSION} ${GTest_VERSION}")
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum" "${sum}")
endfunction()
