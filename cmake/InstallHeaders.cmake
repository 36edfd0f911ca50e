# Installs the public header and the headers that it needs; nothing else of a room can be included by a user.
#
# Run by `cmake --install`. ostro_source is the source tree, ostro_include the folder below the prefix.
cmake_minimum_required(VERSION 3.25)  # it runs by itself
set(public_headers "ostro/ostro.h")
set(unread ${public_headers})
while(unread)
  list(POP_FRONT unread header)
  file(STRINGS "${ostro_source}/${header}" includes REGEX "^#include \"ostro/")
  foreach(line ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT included IN_LIST public_headers)
      list(APPEND public_headers "${included}")
      list(APPEND unread "${included}")
    endif()
  endforeach()
endwhile()
foreach(header ${public_headers})
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL "${ostro_source}/${header}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${ostro_include}/${folder}")
endforeach()
