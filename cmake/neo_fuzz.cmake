# neo_fuzz_<name>: one program for each fuzz/<name>_target.cpp, with what the other files of fuzz/ hold.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "fuzz/ needs libFuzzer. Got ${CMAKE_CXX_COMPILER_ID}, expected Clang. "
                      "Hint: cmake --preset fuzz")
endif()

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*.cpp")
set(fuzz_targets ${fuzz_sources})
list(FILTER fuzz_targets INCLUDE REGEX "_target\\.cpp$")
list(FILTER fuzz_sources EXCLUDE REGEX "_target\\.cpp$")

add_library(neo_fuzz_common STATIC ${fuzz_sources})
target_include_directories(neo_fuzz_common PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(neo_fuzz_common PUBLIC neo_saved neo_runtime)
foreach(source IN LISTS fuzz_targets)
  string(REGEX REPLACE "^.*/(.*)_target\\.cpp$" "neo_fuzz_\\1" target "${source}")
  add_executable(${target} "${source}")
  target_link_libraries(${target} PRIVATE neo_fuzz_common -fsanitize=fuzzer)
endforeach()
