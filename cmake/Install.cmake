# cmake --install: the program, the rooms' libraries, the public header and what it needs, and ostroConfig.cmake, so that a project of
# its own can say find_package(ostro) and link ostro::ostro (examples/my_model).
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY OSTRO_ROOMS)
add_library(ostro_all INTERFACE)
set_target_properties(ostro_all PROPERTIES EXPORT_NAME ostro)
target_link_libraries(ostro_all INTERFACE ${rooms})
target_compile_features(ostro_all INTERFACE cxx_std_20)
# Inline functions of our headers end up in the user's objects, and must do the same arithmetic there.
target_compile_options(ostro_all INTERFACE
  -march=x86-64-v3 -ffp-contract=off -fno-math-errno -fno-trapping-math)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ostro)
install(TARGETS ${rooms} ostro_all EXPORT ostroTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT ostroTargets NAMESPACE ostro:: DESTINATION ${package_dir})
install(CODE "set(ostro_source \"${PROJECT_SOURCE_DIR}\")\nset(ostro_include \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT cmake/InstallHeaders.cmake)
configure_package_config_file(cmake/ostroConfig.cmake.in ostroConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ostroConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/ostroConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/ostroConfigVersion.cmake"
        DESTINATION ${package_dir})
install(FILES cmake/Dependencies.cmake DESTINATION ${package_dir})
if(PyArrow_FOUND)
  install(FILES "${PyArrow_arrow_LIB}" "${PyArrow_parquet_LIB}" DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
