# ostro_test(NAME LABEL label BUDGET seconds COMMAND word... [TIMEOUT seconds] [PROCESSORS n] [ENVIRONMENT name=value...]
#            [WORKING_DIRECTORY folder] [ALWAYS])
#
# One test of ctest, run by tests/suite/run_test.py: that gives it the seed of its samples, measures it and leaves what it
# saw in results/NAME.json of the build folder. BUDGET is CPU time in the sampled form (docs/inside/testing.md has the
# table); ctest starts the longest first, so that none is left to run alone at the end. TIMEOUT is for the full form on an
# idle machine (run_test.py). A test that costs 8 s or more and is not `fast` has the label `drawn` besides, unless it says
# ALWAYS: of those, scripts/test.sh runs as many as fit into its time, where it runs samples (tests/suite/choose.py).
function(ostro_test name)
  cmake_parse_arguments(TEST "ALWAYS" "LABEL;BUDGET;TIMEOUT;PROCESSORS;WORKING_DIRECTORY" "COMMAND;ENVIRONMENT" ${ARGN})
  foreach(needed LABEL BUDGET COMMAND)
    if(NOT DEFINED TEST_${needed})
      message(FATAL_ERROR "ostro: test ${name} has no ${needed}")
    endif()
  endforeach()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 900)
  endif()
  if(NOT TEST_WORKING_DIRECTORY)
    set(TEST_WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY "${TEST_WORKING_DIRECTORY}"
           COMMAND python3 "${PROJECT_SOURCE_DIR}/tests/suite/run_test.py" --name ${name} --budget ${TEST_BUDGET}
                   --timeout ${TEST_TIMEOUT} --results "${PROJECT_BINARY_DIR}/results" -- ${TEST_COMMAND})
  math(EXPR longer "20 * ${TEST_TIMEOUT} + 30")  # run_test.py ends what hangs, with all that it started
  if(TEST_BUDGET GREATER_EQUAL 8 AND NOT TEST_ALWAYS AND NOT TEST_LABEL STREQUAL fast)
    list(APPEND TEST_LABEL drawn)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABEL}" TIMEOUT ${longer} COST ${TEST_BUDGET})
  if(TEST_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${TEST_PROCESSORS})
  endif()
  if(TEST_ENVIRONMENT)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TEST_ENVIRONMENT}")
  endif()
endfunction()
