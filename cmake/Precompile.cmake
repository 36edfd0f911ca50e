# What makes a build from nothing (CI) cheaper: rooms compiled in batches of files, and precompiled headers.
#
# Only without a launcher: ccache makes up for more than they save and misses more often with them. So two kinds of
# build exist and each catches what the other hides: with ccache every file has to include what it uses; without it,
# names in the anonymous namespaces of a room's files have to differ. Files with compiler options of their own (the
# kernels of an instruction set) are never batched, nor are tests that are not a room's.
#
# ostro_batch(TARGET FILES): compiles the files of a room, or of its tests, in batches of so many. What files of a batch
# include and instantiate is compiled once: tests of a room cost a third of what they cost one by one.
# ostro_precompile(TARGET): gives the target the headers of its kind; programs and libraries differ in -fPIE. Programs
# that get them are tests, and a test's own code is compiled with -O0, which costs a third less: what it calls is not.
#
# ostro_rooms_first(TARGET OF [ROOM...]): links the rooms that the program OF uses before the objects of TARGET, all but
# those named. Of inline functions and templates, which every object has a copy of, a linker keeps the first: a test's
# copies, compiled with -O0, would stand in for those of the rooms, which then run several times slower and are not what is
# shipped.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(OSTRO_BATCH ON)
endif()
if(OSTRO_BATCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(OSTRO_PRECOMPILE ON)
endif()
set(OSTRO_PRECOMPILED_HEADERS
    <fmt/format.h> <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view> <utility>
    <variant> <vector>)
# What most tests include beside these.
set(OSTRO_PRECOMPILED_TEST_HEADERS
    <doctest/doctest.h> <nlohmann/json.hpp> <array> <atomic> <chrono> <cmath> <condition_variable> <cstring> <deque>
    <filesystem> <fstream> <limits> <mutex> <numeric> <random> <set> <sstream> <thread> <tuple> <unordered_map>)

function(ostro_batch target files)
  if(OSTRO_BATCH)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # gcc takes a file that another one includes for a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Rooms that only trace, parse, print or decide: -O1 costs a third less to compile, and no loop of theirs takes time, but
# for those of the files named.
function(ostro_cold target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
    set_target_properties(${target} PROPERTIES OSTRO_COLD ON)
    ostro_optimise(-O3 ${ARGN})
  endif()
endfunction()

# Files that are optimised otherwise than their target: they are compiled one by one, without its precompiled headers.
function(ostro_optimise level)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${level} SKIP_UNITY_BUILD_INCLUSION ON
                                SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# The precompiled headers of cold rooms: they must be compiled as what uses them.
if(OSTRO_PRECOMPILE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_library(ostro_cold_headers STATIC "${CMAKE_CURRENT_LIST_DIR}/no_source.cc")
  target_compile_options(ostro_cold_headers PRIVATE -O1)
  target_link_libraries(ostro_cold_headers PRIVATE fmt::fmt)
  target_precompile_headers(ostro_cold_headers PRIVATE ${OSTRO_PRECOMPILED_HEADERS})
endif()

function(ostro_rooms_of target found)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  set(rooms ${${found}})
  foreach(library ${libraries})
    if(library MATCHES "^ostro_" AND NOT library MATCHES "^ostro_(test_main|.*_elsewhere)$" AND TARGET ${library}
       AND NOT library IN_LIST rooms)
      list(APPEND rooms ${library})
      ostro_rooms_of(${library} rooms)
    endif()
  endforeach()
  set(${found} ${rooms} PARENT_SCOPE)
endfunction()

function(ostro_link_rooms_first target of)
  set(rooms)
  ostro_rooms_of(${of} rooms)
  list(REMOVE_ITEM rooms "" ${ARGN})
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_options(${target} PRIVATE LINKER:--whole-archive ${rooms} LINKER:--no-whole-archive)
endfunction()

# Done at the very end, when it is known what every target links.
function(ostro_rooms_first)
  list(JOIN ARGN " " words)
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}]] CALL ostro_link_rooms_first ${words})")
endfunction()

function(ostro_precompile target)
  get_target_property(type ${target} TYPE)
  get_target_property(is_cold ${target} OSTRO_COLD)
  if(type STREQUAL "EXECUTABLE" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O0)
    ostro_rooms_first(${target} ${target})
  endif()
  if(NOT OSTRO_PRECOMPILE)
    return()
  endif()
  if(type STREQUAL "EXECUTABLE")
    target_precompile_headers(${target} REUSE_FROM ostro_test_main)
  elseif(is_cold)
    target_precompile_headers(${target} REUSE_FROM ostro_cold_headers)
  elseif(TARGET ostro_base AND NOT target STREQUAL "ostro_base")
    target_precompile_headers(${target} REUSE_FROM ostro_base)
  else()
    target_precompile_headers(${target} PRIVATE ${OSTRO_PRECOMPILED_HEADERS})
  endif()
endfunction()
