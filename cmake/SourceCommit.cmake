# Run by a build step: writes OUTPUT, a header that defines OSTRO_SOURCE_COMMIT as the commit of SOURCE
# ("-dirty" when tracked files were changed, "unknown" when it is no repository), only when that is another.
set(ENV{GIT_OPTIONAL_LOCKS} 0)
# A tree that another user owns is read as well: git refuses that by itself.
execute_process(COMMAND git -C "${SOURCE}" -c safe.directory=* describe --always --abbrev=40 --exclude=* --dirty
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
set(text "#pragma once\n#define OSTRO_SOURCE_COMMIT \"${commit}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT "${text}" STREQUAL "${old}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
