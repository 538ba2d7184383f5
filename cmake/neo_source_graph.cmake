# export_sources.json of a build whose objects are of one source each: target neo_source_graph. Target
# renew_export_sources takes it into the repository.

set(objects "")
foreach(folder base ir ops ops_called exec exec_small routines routines_small routines_scalar runtime runtime_devices saved capi standalone)
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
add_custom_target(
  renew_export_sources
  COMMAND "${CMAKE_COMMAND}" -E copy "${source_graph}" "${PROJECT_SOURCE_DIR}/cmake/export_sources.json"
  DEPENDS "${source_graph}"
  VERBATIM)
