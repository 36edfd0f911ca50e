# Apache Arrow and Parquet as they lie in the Python package pyarrow: headers and libraries without a CMake
# package of their own. Gives PyArrow_FOUND, PyArrow_VERSION and the imported targets PyArrow::arrow and
# PyArrow::parquet.
#
# PyArrow_PYTHON: the Python to ask for the package, by default the project's .venv, else python3.
# The libraries' names hold the release, so a program runs with the release it was built with.
# Asked anew every time: the package may have been installed or replaced since.
if(PyArrow_PYTHON)
  set(pyarrow_python "${PyArrow_PYTHON}")
else()
  unset(pyarrow_python)
  find_program(pyarrow_python NAMES python python3 PATHS "${CMAKE_SOURCE_DIR}/.venv/bin" NO_DEFAULT_PATH NO_CACHE)
  find_program(pyarrow_python NAMES python3 NO_CACHE)
endif()
if(pyarrow_python AND NOT PyArrow_ROOT)
  execute_process(
    COMMAND "${pyarrow_python}" -c
            "import importlib.util as u; s = u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE PyArrow_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

unset(PyArrow_INCLUDE_DIR CACHE)
unset(PyArrow_arrow_LIB CACHE)
unset(PyArrow_parquet_LIB CACHE)
if(PyArrow_ROOT)
  find_path(PyArrow_INCLUDE_DIR arrow/util/config.h PATHS "${PyArrow_ROOT}/include" NO_DEFAULT_PATH)
endif()
if(PyArrow_INCLUDE_DIR)
  file(STRINGS "${PyArrow_INCLUDE_DIR}/arrow/util/config.h" defines REGEX "define ARROW_(VERSION_STRING|SO_VERSION) ")
  string(REGEX REPLACE ".*ARROW_VERSION_STRING \"([^\"]+)\".*" "\\1" PyArrow_VERSION "${defines}")
  string(REGEX REPLACE ".*ARROW_SO_VERSION \"([^\"]+)\".*" "\\1" PyArrow_SO "${defines}")
  foreach(library arrow parquet)
    find_file(PyArrow_${library}_LIB "lib${library}.so.${PyArrow_SO}" PATHS "${PyArrow_ROOT}" NO_DEFAULT_PATH)
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyArrow REQUIRED_VARS PyArrow_INCLUDE_DIR PyArrow_arrow_LIB PyArrow_parquet_LIB
                                  VERSION_VAR PyArrow_VERSION)
if(PyArrow_FOUND AND NOT TARGET PyArrow::parquet)
  foreach(library arrow parquet)
    add_library(PyArrow::${library} SHARED IMPORTED GLOBAL)
    set_target_properties(PyArrow::${library} PROPERTIES
      IMPORTED_LOCATION "${PyArrow_${library}_LIB}" IMPORTED_SONAME "lib${library}.so.${PyArrow_SO}"
      INTERFACE_INCLUDE_DIRECTORIES "${PyArrow_INCLUDE_DIR}")
  endforeach()
  set_target_properties(PyArrow::parquet PROPERTIES INTERFACE_LINK_LIBRARIES PyArrow::arrow)
endif()
