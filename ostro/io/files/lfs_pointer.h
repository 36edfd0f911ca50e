// refuse_lfs_pointer: refuses files of which Git LFS has left only the pointer.
#pragma once

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Error: kCorrupt if the file is a Git LFS pointer, a text of a few lines that stands in a clone for a file
// that was not fetched. The message names the command that fetches it. File systems call it for every file
// that is opened, so that no reader takes the pointer for weights, JSON or a text to train on.
Status refuse_lfs_pointer(const RandomAccessFile& file);

}  // namespace ostro::io
