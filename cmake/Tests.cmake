# ostro_test(NAME LABEL label BUDGET seconds COMMAND word... [TIMEOUT seconds] [PROCESSORS n] [ENVIRONMENT name=value...]
#            [WORKING_DIRECTORY folder] [DRAWN])
#
# One test of ctest, run by tests/suite/run_test.py: that gives it the seed of its samples, measures it and leaves what it
# saw in results/NAME.json of the build folder. BUDGET is CPU time in the sampled form (docs/inside/testing.md has the
# table); ctest starts the longest first, so that none is left to run alone at the end. TIMEOUT is for the full form on an
# idle machine (run_test.py). DRAWN gives it the label `drawn` besides: scripts/test.sh runs a
# third of these tests, drawn by the seed, where it runs samples.
function(ostro_test name)
  cmake_parse_arguments(TEST "DRAWN" "LABEL;BUDGET;TIMEOUT;PROCESSORS;WORKING_DIRECTORY" "COMMAND;ENVIRONMENT" ${ARGN})
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
  if(TEST_DRAWN)
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
