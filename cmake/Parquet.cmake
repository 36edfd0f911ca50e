# Reading .parquet needs Apache Arrow, which Debian does not have: the libraries inside Python's pyarrow. They are
# installed beside our own, so that what is installed does not need the Python environment.
set(OSTRO_WITH_PARQUET AUTO CACHE STRING "Read .parquet by the libraries of pyarrow 26: ON, OFF, or AUTO (when found)")
set_property(CACHE OSTRO_WITH_PARQUET PROPERTY STRINGS AUTO ON OFF)
# ThreadSanitizer cannot see what libraries that it did not build do, and reading .parquet has no threads.
if(OSTRO_WITH_PARQUET AND NOT (OSTRO_WITH_PARQUET STREQUAL "AUTO" AND CMAKE_BUILD_TYPE STREQUAL "Tsan"))
  list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
  find_package(PyArrow 26 QUIET)
  if(NOT PyArrow_FOUND AND NOT OSTRO_WITH_PARQUET STREQUAL "AUTO")
    message(FATAL_ERROR "ostro: pyarrow 26 was not found; run scripts/setup.sh --python, or name a Python that has "
                        "it with -DPyArrow_PYTHON=..., or build with -DOSTRO_WITH_PARQUET=OFF")
  endif()
endif()
# The program looks for libraries beside its own folder (ostro/cli/CMakeLists.txt).
if(PyArrow_FOUND)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/ostro/${CMAKE_INSTALL_LIBDIR}")
  foreach(library arrow parquet)
    file(CREATE_LINK "${PyArrow_${library}_LIB}"
         "${PROJECT_BINARY_DIR}/ostro/${CMAKE_INSTALL_LIBDIR}/lib${library}.so.${PyArrow_SO}" SYMBOLIC)
  endforeach()
endif()
