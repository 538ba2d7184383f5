# What `neo export` needs beside _neo: the sources of a runtime, and which of them need which.

set(objects "")
foreach(folder base ir ops exec routines routines_small routines_scalar runtime saved capi exported)
  list(APPEND objects $<FILTER:$<TARGET_OBJECTS:neo_${folder}>,EXCLUDE,gch$>)
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/export_objects.txt" CONTENT "$<JOIN:${objects},\n>\n")
set(source_graph "${PROJECT_BINARY_DIR}/export_sources.json")
add_custom_command(
  OUTPUT "${source_graph}"
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/source_graph.py" "${CMAKE_NM}"
          "${PROJECT_BINARY_DIR}/export_objects.txt" "${source_graph}"
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
  DEPENDS "${PROJECT_SOURCE_DIR}/cmake/source_graph.py" "${PROJECT_BINARY_DIR}/export_objects.txt" ${objects}
  VERBATIM)
add_custom_target(neo_source_graph ALL DEPENDS "${source_graph}")

install(FILES "${source_graph}" DESTINATION neo COMPONENT python OPTIONAL)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/csrc" DESTINATION neo/export/source COMPONENT python
        PATTERN bindings EXCLUDE PATTERN lower EXCLUDE PATTERN passes EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/neo_isa.cmake" "${PROJECT_SOURCE_DIR}/LICENSE"
        DESTINATION neo/export/source/cmake COMPONENT python)
