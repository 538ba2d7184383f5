# neo_cpp_tests: every *.cpp below tests/cpp; *.isa.cpp are kernels under test, compiled once per tier.

set(NEO_GTEST_SOURCE "" CACHE PATH "GoogleTest's sources, where no built library fits (cross-compiling)")
if(NEO_GTEST_SOURCE)
  set(INSTALL_GTEST OFF)
  set(BUILD_GMOCK OFF)
  set(CMAKE_WARN_DEPRECATED OFF)
  add_subdirectory("${NEO_GTEST_SOURCE}" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()

set(folder "${PROJECT_SOURCE_DIR}/tests/cpp")
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
set(isa_sources ${sources})
list(FILTER isa_sources INCLUDE REGEX "\\.isa\\.cpp$")
list(FILTER sources EXCLUDE REGEX "\\.isa\\.cpp$")

if(sources)
  add_executable(neo_cpp_tests ${sources})
  target_include_directories(neo_cpp_tests PRIVATE "${folder}")
  target_link_libraries(neo_cpp_tests PRIVATE neo_passes neo_lower neo_tune neo_saved neo_select neo_runtime GTest::gtest_main)
  neo_precompile(neo_cpp_tests tests <gtest/gtest.h>)
  neo_unity(neo_cpp_tests 5)
  neo_isa_sources(neo_cpp_tests ${isa_sources})

  include(GoogleTest)
  gtest_discover_tests(neo_cpp_tests DISCOVERY_MODE PRE_TEST)
endif()
