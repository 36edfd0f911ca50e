# Precompiled headers of the standard library and fmt: a fifth less work in a build from nothing (CI).
#
# Only with gcc, in Release and without a launcher: ccache makes up for more than they save and misses more often
# with them. All other builds (clang, debug, sanitizers, ccache) go without, so that every file still has to
# include what it uses.
#
# ostro_precompile(TARGET): gives the target the headers of its kind; programs and libraries differ in -fPIE.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(OSTRO_PRECOMPILE ON)
endif()
set(OSTRO_PRECOMPILED_HEADERS
    <fmt/core.h> <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view> <utility>
    <variant> <vector>)

function(ostro_precompile target)
  if(NOT OSTRO_PRECOMPILE)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_precompile_headers(${target} REUSE_FROM ostro_test_main)
  elseif(TARGET ostro_base AND NOT target STREQUAL "ostro_base")
    target_precompile_headers(${target} REUSE_FROM ostro_base)
  else()
    target_precompile_headers(${target} PRIVATE ${OSTRO_PRECOMPILED_HEADERS})
  endif()
endfunction()
