# neo_fuzz_<name>: one program for each fuzz/<name>_target.cpp, with what the other files of fuzz/ hold. Clang brings
# libFuzzer; other compilers take fuzz/driver.cpp, which has its command line.

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*.cpp")
set(fuzz_targets ${fuzz_sources})
list(FILTER fuzz_targets INCLUDE REGEX "_target\\.cpp$")
list(FILTER fuzz_sources EXCLUDE REGEX "_target\\.cpp$|/driver\\.cpp$")

add_library(neo_fuzz_common STATIC ${fuzz_sources})
target_include_directories(neo_fuzz_common PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(neo_fuzz_common PUBLIC neo_capi neo_saved neo_runtime)
foreach(source IN LISTS fuzz_targets)
  string(REGEX REPLACE "^.*/(.*)_target\\.cpp$" "neo_fuzz_\\1" target "${source}")
  add_executable(${target} "${source}")
  target_link_libraries(${target} PRIVATE neo_fuzz_common)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/fuzz/driver.cpp")
  endif()
endforeach()

option(NEO_FUZZ_COVERAGE "Instrument what reads a saved module for gcov" OFF)
if(NEO_FUZZ_COVERAGE)
  file(GLOB loader_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/csrc/saved/*.cpp")
  set_property(SOURCE ${loader_sources} "${PROJECT_SOURCE_DIR}/csrc/base/json.cpp" APPEND
               PROPERTY COMPILE_OPTIONS --coverage -O0)
  target_link_options(neo_instrumentation INTERFACE --coverage)
endif()
