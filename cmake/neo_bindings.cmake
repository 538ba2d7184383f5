# The extension module neo._neo, which sees every folder.

file(GLOB_RECURSE binding_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/csrc/bindings/*.cpp")
if(NOT binding_sources)
  message(FATAL_ERROR "csrc/bindings holds no source. Hint: configure with -DNEO_BUILD_PYTHON=OFF")
endif()

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT pybind11_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
    OUTPUT_VARIABLE pybind11_cmake_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(pybind11_cmake_dir)
    set(pybind11_DIR "${pybind11_cmake_dir}" CACHE PATH "" FORCE)
  endif()
endif()
find_package(pybind11 2.13 CONFIG REQUIRED)

# neo_extension_module(<name> <source>...): an extension module of which others of the process see nothing.
set(module_symbols "${PROJECT_SOURCE_DIR}/csrc/bindings/module.map")
function(neo_extension_module name)
  pybind11_add_module(${name} MODULE NO_EXTRAS ${ARGN})
  target_link_options(${name} PRIVATE LINKER:--version-script=${module_symbols})
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${module_symbols})
endfunction()

# What calls of a model pass through is not compiled for size.
set(called_sources ${binding_sources})
list(FILTER called_sources INCLUDE REGEX "/(module|arrays)\\.cpp$")
list(REMOVE_ITEM binding_sources ${called_sources})
add_library(_neo_called OBJECT ${called_sources})
target_include_directories(_neo_called PRIVATE "${PROJECT_SOURCE_DIR}/csrc")
target_link_libraries(_neo_called PRIVATE neo_options pybind11::module)

neo_extension_module(_neo ${binding_sources} $<TARGET_OBJECTS:_neo_called>)
target_link_libraries(_neo PRIVATE neo_options neo_passes neo_lower neo_tune neo_saved neo_select neo_runtime)
target_compile_options(_neo PRIVATE ${NEO_SMALL_FLAGS})
neo_precompile(_neo small_modules <pybind11/numpy.h> <pybind11/stl.h>)
target_link_options(_neo PRIVATE $<$<CONFIG:Release>:LINKER:--gc-sections,--strip-debug>)
install(TARGETS _neo LIBRARY DESTINATION neo COMPONENT python)

# Most of the time goes to pybind11's templates, so these are compiled together also where NEO_UNITY is off.
foreach(target _neo _neo_called)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5 UNITY_BUILD_RELOCATABLE ON)
endforeach()

# neo_test_module(<name> <source>...): an extension module of the tests, compiled quickly.
function(neo_test_module name)
  neo_extension_module(${name} ${ARGN})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  neo_precompile(${name} test_modules <pybind11/numpy.h> <pybind11/stl.h>)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4 UNITY_BUILD_RELOCATABLE ON)
endfunction()

# What tests/accuracy makes routines wrong with. It shares the types of _neo, beside which the tests look for it.
if(NEO_BUILD_TESTS OR NOT SKBUILD)
  neo_test_module(_wrong_routines "${PROJECT_SOURCE_DIR}/tests/accuracy/wrong_routines.cpp")
  target_link_libraries(_wrong_routines PRIVATE neo_options neo_lower neo_runtime)
endif()

# The kernels of tests/kernel_ir, printed and run on devices. The tests look for it in the build's folder.
if(NEO_BUILD_TESTS OR NOT SKBUILD)
  file(GLOB kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/kernel_ir/*.cpp")
  neo_test_module(_kernels ${kernel_sources})
  target_link_libraries(_kernels PRIVATE neo_options neo_kernel_ir neo_runtime)

  # The programs of the GPU's routines, without models.
  file(GLOB program_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/routines/gpu/*.cpp")
  neo_test_module(_gpu_programs ${program_sources})
  target_link_libraries(_gpu_programs PRIVATE neo_options neo_routines neo_runtime)
  install(TARGETS _wrong_routines _kernels _gpu_programs LIBRARY DESTINATION neo COMPONENT python OPTIONAL)
endif()
