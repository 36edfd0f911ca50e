# ostro_kernel_flags(): the flags of a room's kernels, which are built once per instruction set and chosen at run time
# (machine/isa.h). A file's name says what it may use. -O3 everywhere: gcc's -O2 leaves loops like these scalar. A file with
# extra -m flags must not instantiate shared inline functions (containers, fmt, checks): the linker keeps one copy for the
# whole program, and it may be the one that needs AVX-512. Such files hold plain loops in an unnamed namespace.
set(OSTRO_KERNEL_OPT "-O3" CACHE STRING "Optimisation of the kernels; never changes a bit (tests/matrix)")

function(ostro_kernel_flags)
  file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(source ${kernel_sources})
    set(flags "${OSTRO_KERNEL_OPT}")
    if(source MATCHES "_avx2\\.cc$")
      list(APPEND flags -mavx2 -mfma -mf16c)
    elseif(source MATCHES "_avx512\\.cc$")
      list(APPEND flags -march=x86-64-v4 -mprefer-vector-width=512)
    elseif(source MATCHES "_avx512bf16\\.cc$")
      list(APPEND flags -march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16)
    elseif(source MATCHES "_amx\\.cc$")
      list(APPEND flags -march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16 -mamx-tile -mamx-bf16
           -mamx-int8)
    elseif(source MATCHES "_vnni256\\.cc$")
      list(APPEND flags -mavx2 -mfma -mf16c -mavxvnni)
    elseif(source MATCHES "_vnni512\\.cc$")
      list(APPEND flags -march=x86-64-v4 -mprefer-vector-width=512 -mavx512vnni)
    elseif(NOT source MATCHES "/kernels/[^/]+$")
      continue()
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()
