# Compiler flags that every translation unit gets.
#
# The bits of a run depend on floating-point code meaning what it says (docs/spec/numerics.md, N0):
# no contraction, no fast-math, in any file of the link. x86-64-v3 is the minimum CPU; files that
# need more (the folders `kernels`) add their own -m flags and are chosen at run time.
add_compile_options(-march=x86-64-v3 -ffp-contract=off -fno-math-errno -fno-trapping-math
                    -Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
# One commit gives one binary, wherever and whenever it is built (scripts/reproducible.sh): no path of this tree and no
# date is compiled in.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" -Wdate-time)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports false positives of these in inlined standard containers.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-pointer>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's stable_sort uses what C++17 deprecates, and clang says so of every caller.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()
if(OSTRO_WERROR)
  add_compile_options(-Werror)
endif()

set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_ASANUBSAN "-Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_ASANUBSAN "${CMAKE_CXX_FLAGS_ASANUBSAN}")
set(CMAKE_EXE_LINKER_FLAGS_ASANUBSAN "-fsanitize=address,undefined")
set(CMAKE_CXX_FLAGS_TSAN "-Og -g1 -fsanitize=thread -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_TSAN "${CMAKE_CXX_FLAGS_TSAN}")
set(CMAKE_EXE_LINKER_FLAGS_TSAN "-fsanitize=thread")
