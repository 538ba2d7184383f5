# What `neo export` needs beside _neo: the sources of a runtime, and which of them need which. Only objects of one source
# each tell that, so a build that compiles several sources together takes the list of the repository, cmake/export_sources.json
# (tools/check_export_sources.py says when it is no longer true).

set(source_graph "${PROJECT_BINARY_DIR}/export_sources.json")
if(NEO_UNITY)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/export_sources.json" "${source_graph}" COPYONLY)
else()
  include(neo_source_graph)
endif()
install(FILES "${source_graph}" DESTINATION neo COMPONENT python OPTIONAL)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/csrc" DESTINATION neo/standalone/source COMPONENT python
        PATTERN bindings EXCLUDE PATTERN candidates EXCLUDE PATTERN tune EXCLUDE PATTERN select EXCLUDE
        PATTERN lower EXCLUDE PATTERN passes EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/neo_isa.cmake" "${PROJECT_SOURCE_DIR}/LICENSE"
        DESTINATION neo/standalone/source/cmake COMPONENT python)
