# The main function of every unit test program, built once; brings doctest along.
#
# Compiled as programs are (-fPIE), since its precompiled headers are theirs too.
add_library(ostro_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/test_main.cc)
target_link_libraries(ostro_test_main PUBLIC doctest::doctest fmt::fmt PRIVATE nlohmann_json::nlohmann_json)
set_target_properties(ostro_test_main PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(ostro_test_main PRIVATE -fPIE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(ostro_test_main PRIVATE -O0)
endif()
if(OSTRO_PRECOMPILE)
  target_precompile_headers(ostro_test_main PRIVATE ${OSTRO_PRECOMPILED_HEADERS} ${OSTRO_PRECOMPILED_TEST_HEADERS})
endif()
