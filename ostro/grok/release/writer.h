// begin_release, write_tensor: write a directory in the layout of Grok-1's release, byte for byte as the
// release's program would pickle it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ostro/grok/layout/leaves.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// Makes the directory, and config.json in it unless the shape is Grok-1's own: the release has none, and its
// files are what a directory without one must hold.
Status begin_release(io::FileSystem& fs, const std::string& directory, const GrokShape& shape);

// Takes the next elements of an array, as they are stored.
using Append = std::function<Status(std::span<const std::byte>)>;
// Gives all elements of `array`, in any number of pieces; `array` is the tensor's weight or its scales.
using Elements = std::function<Status(const StoredArray& array, const Append& append)>;

// Writes the file of one tensor atomically. `elements` is called for the weight, then for the scales if there
// are any. Error: it gave another number of bytes than the array has.
Status write_tensor(io::FileSystem& fs, const std::string& directory, const Leaf& leaf,
                    const Elements& elements);

// Writes such a file with zeros for all elements, as holes: it takes no more space than its pickle. Not
// durable, since it holds no data. Needs a file system that can extend files.
Status write_hollow_tensor(io::FileSystem& fs, const std::string& directory, const Leaf& leaf);

}  // namespace ostro::grok
