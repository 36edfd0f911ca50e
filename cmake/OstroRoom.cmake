# ostro_room(NAME DEPS room... [LIBS target...] [EXCLUDE file...] [COLD [HOT file...]] [HOT_TESTS file...]
#            [BUDGET seconds] [SLOW_BUDGET seconds])
#
# One library target `ostro_NAME` for the room, made of the *.cc files of its folder (and the
# folders below it), and one test program `NAME_test` made of its *_test.cc files.
# COLD: a room without loops that take time is compiled with less optimisation; HOT: files of it that have such loops.
# HOT_TESTS: tests that compute much themselves (a reference in plain code); they are optimised, all others are not.
# BUDGET: of its test, if 6 s of CPU time are too few, SLOW_BUDGET: of its slow cases, if 12 s are (docs/inside/testing.md).
# A test case whose name starts with "slow:" runs under the ctest label `slow`, all others under `fast`. Those of the
# suite "one-thread" start none and take long with ThreadSanitizer, which has nothing to find in them: it leaves them out.
#
# With OSTRO_LIBRARIES_FROM, another build folder of the same sources, only the rooms of OSTRO_BUILD_ROOMS are compiled and
# tested here; the libraries of the others are that folder's. So a sanitizer or another compiler can be tried on some rooms
# at the price of these (scripts/sanitize.sh, tests/matrix).
set(OSTRO_LIBRARIES_FROM "" CACHE PATH "A build folder whose libraries stand for rooms that OSTRO_BUILD_ROOMS does not name")
set(OSTRO_BUILD_ROOMS "" CACHE STRING "With OSTRO_LIBRARIES_FROM: the rooms to build here")
set(OSTRO_TEST_FILES "" CACHE STRING "Only these test files of a room: a regular expression of names without _test.cc")
set(OSTRO_NO_SOURCE "${CMAKE_CURRENT_LIST_DIR}/no_source.cc")

function(ostro_room name)
  cmake_parse_arguments(ROOM "COLD" "BUDGET;SLOW_BUDGET" "DEPS;LIBS;EXCLUDE;HOT;HOT_TESTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(pattern ${ROOM_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "(${OSTRO_TEST_FILES})_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  if(NOT sources)  # a room of headers alone
    set(sources "${OSTRO_NO_SOURCE}")
  endif()

  set(elsewhere FALSE)
  if(OSTRO_LIBRARIES_FROM AND NOT name IN_LIST OSTRO_BUILD_ROOMS)
    set(elsewhere TRUE)
    set(sources "${OSTRO_NO_SOURCE}")
    add_library(ostro_${name}_elsewhere STATIC IMPORTED GLOBAL)
    set_target_properties(ostro_${name}_elsewhere PROPERTIES
      IMPORTED_LOCATION "${OSTRO_LIBRARIES_FROM}/ostro/${name}/libostro_${name}.a")
    foreach(dep ${ROOM_DEPS})
      target_link_libraries(ostro_${name}_elsewhere INTERFACE ostro_${dep})
    endforeach()
    target_link_libraries(ostro_${name}_elsewhere INTERFACE ${ROOM_LIBS})
  endif()

  add_library(ostro_${name} STATIC ${sources})
  add_library(ostro::${name} ALIAS ostro_${name})
  set_target_properties(ostro_${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_include_directories(ostro_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  foreach(dep ${ROOM_DEPS})
    target_link_libraries(ostro_${name} PUBLIC ostro_${dep})
  endforeach()
  target_link_libraries(ostro_${name} PRIVATE ${ROOM_LIBS})
  if(elsewhere)
    target_link_libraries(ostro_${name} INTERFACE ostro_${name}_elsewhere)
  endif()
  ostro_batch(ostro_${name} 24)
  if(ROOM_COLD)
    ostro_cold(ostro_${name} ${ROOM_HOT})
  endif()
  ostro_precompile(ostro_${name})
  set_property(GLOBAL APPEND PROPERTY OSTRO_ROOMS ostro_${name})

  if(OSTRO_BUILD_TESTS AND tests AND NOT elsewhere)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ostro_test_main ostro_${name} ${ROOM_LIBS})
    ostro_batch(${name}_test 16)
    ostro_precompile(${name}_test)
    ostro_optimise(-O1 ${ROOM_HOT_TESTS})
    set(without --test-case-exclude=slow:*)
    if(CMAKE_BUILD_TYPE STREQUAL "Tsan")
      list(APPEND without --test-suite-exclude=one-thread)
    endif()
    set(seconds 120)
    if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
      set(seconds 600)  # sanitizers cost a factor of five to fifteen
    endif()
    if(NOT ROOM_BUDGET)
      set(ROOM_BUDGET 6)
    endif()
    ostro_test(${name} LABEL fast BUDGET ${ROOM_BUDGET} TIMEOUT ${seconds} COMMAND $<TARGET_FILE:${name}_test> ${without})
    foreach(test ${tests})
      file(STRINGS ${test} slow_cases REGEX "TEST_CASE\\(\"slow:")
      if(slow_cases)
        set(has_slow TRUE)
      endif()
    endforeach()
    if(has_slow)
      if(NOT ROOM_SLOW_BUDGET)
        set(ROOM_SLOW_BUDGET 12)
      endif()
      ostro_test(${name}.slow LABEL slow BUDGET ${ROOM_SLOW_BUDGET} TIMEOUT 1800
                 COMMAND $<TARGET_FILE:${name}_test> --test-case=slow:*)
    endif()
  endif()
endfunction()
