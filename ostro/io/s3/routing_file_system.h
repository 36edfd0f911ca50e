// The file system of the command line: local paths and s3:// side by side.
#pragma once

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Local files, and objects of an S3 server for paths that begin with s3:// (s3_file_system.h; the environment
// is read at the first of them). Other schemes (gs://, http://, ...) are ErrorCode::kUnsupported.
// Thread-safe; lives as long as the process.
FileSystem& default_file_system();

}  // namespace ostro::io
