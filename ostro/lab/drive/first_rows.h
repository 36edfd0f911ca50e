// write_first_rows: the files of a source in a sanity run (Plan::sanity): its first rows, as files of their
// own. Private to the sub-room.
#pragma once

#include "ostro/lab/drive/decide.h"

namespace ostro::lab {

inline constexpr int64_t kSanityRows = 200;            // of each source
inline constexpr int64_t kSanityTextBytes = 16 << 10;  // of a file of text, which is one row

// Replaces `files` by files with the first rows of them, in the lab's folder, and returns those with their
// hashes. A text file is one row, of which the beginning is taken. A lab that only looks writes nothing.
// Errors: those of reading and writing.
Result<std::vector<PinnedFile>> write_first_rows(OpenLab& lab, const Step& source,
                                                 std::vector<data::SourceFile>& files);

}  // namespace ostro::lab
