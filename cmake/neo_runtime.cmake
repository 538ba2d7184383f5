# libneo, the runtime without Python: neo.h and what loading and running a saved module needs.
# cmake --install BUILD --component runtime --prefix DIR puts it where find_package(neo) and pkg-config find it.

include(GNUInstallDirs)

file(STRINGS "${PROJECT_SOURCE_DIR}/csrc/capi/neo.h" header_lines REGEX "^#define NEO_(ABI_)?VERSION ")
string(REGEX REPLACE ".*NEO_VERSION \"([0-9.]+)\".*" "\\1" header_version "${header_lines}")
string(REGEX REPLACE ".*NEO_ABI_VERSION ([0-9]+).*" "\\1" abi_version "${header_lines}")
if(NOT header_version STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "neo.h must have the project's version. Got ${header_version}, expected ${PROJECT_VERSION}")
endif()

# One archive of all folders, since a static library takes none of those that it is linked with.
set(objects "")
foreach(folder base ir ops exec kernel_ir routines runtime saved capi)
  get_target_property(folder_objects neo_${folder} NEO_OBJECTS)
  list(APPEND objects ${folder_objects})
endforeach()
add_library(neo_static STATIC ${objects})
set_target_properties(neo_static PROPERTIES OUTPUT_NAME neo LINKER_LANGUAGE CXX)

set(symbols "${PROJECT_SOURCE_DIR}/csrc/capi/neo.map")
add_library(neo SHARED $<TARGET_OBJECTS:neo_capi>)
target_link_libraries(neo PRIVATE neo_saved neo_runtime)
target_link_options(neo PRIVATE LINKER:--version-script=${symbols}
                                $<$<CONFIG:Release>:LINKER:--no-undefined,--gc-sections,--strip-all>)
set_target_properties(neo PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${abi_version}
                                     LINK_DEPENDS ${symbols})

# What a program names beside libneo.a.
set(NEO_STATIC_LIBRARIES stdc++ m pthread ${CMAKE_DL_LIBS})
file(RELATIVE_PATH prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" prefix "${prefix}")
list(TRANSFORM NEO_STATIC_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE private_libraries)
list(JOIN private_libraries " " private_libraries)
configure_file("${PROJECT_SOURCE_DIR}/cmake/neo.pc.in" "${PROJECT_BINARY_DIR}/neo.pc" @ONLY)

include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/neo")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/neoConfig.cmake.in" "${PROJECT_BINARY_DIR}/neoConfig.cmake"
                              INSTALL_DESTINATION "${package}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/neoConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

install(TARGETS neo neo_static
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT runtime
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/csrc/capi/neo.h" "${PROJECT_SOURCE_DIR}/csrc/capi/neo.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT runtime)
install(FILES "${PROJECT_BINARY_DIR}/neo.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT runtime)
install(FILES "${PROJECT_BINARY_DIR}/neoConfig.cmake" "${PROJECT_BINARY_DIR}/neoConfigVersion.cmake"
  DESTINATION "${package}" COMPONENT runtime)

# The wheel has the shared library and the headers inside the package, where python -m neo.config finds them. A wheel
# holds no links, so the file has the name that programs look for.
set(wheel neo)
install(FILES $<TARGET_FILE:neo> DESTINATION "${wheel}/${CMAKE_INSTALL_LIBDIR}" RENAME libneo.so.${abi_version}
  COMPONENT wheel)
install(FILES "${PROJECT_SOURCE_DIR}/csrc/capi/neo.h" "${PROJECT_SOURCE_DIR}/csrc/capi/neo.hpp"
  DESTINATION "${wheel}/${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT wheel)
install(FILES "${PROJECT_BINARY_DIR}/neoConfig.cmake" "${PROJECT_BINARY_DIR}/neoConfigVersion.cmake"
  DESTINATION "${wheel}/${package}" COMPONENT wheel)
