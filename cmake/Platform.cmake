# Ends the configuration where Ostro cannot run: its kernels are written for x86-64-v3, its files and processes for Linux.
set(other_ways "The packages and the image (README.md) need the same.")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "ostro: this system is ${CMAKE_SYSTEM_NAME}, and Ostro runs on Linux only. ${other_ways}")
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  message(FATAL_ERROR "ostro: this processor is ${CMAKE_SYSTEM_PROCESSOR}, and Ostro runs on x86-64-v3 only, which has AVX2 and FMA. ${other_ways}")
endif()
