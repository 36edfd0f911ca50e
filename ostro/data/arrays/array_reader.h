// Reads ranges of an array of a store, wherever its elements lie. Does not check them: VerifiedArray does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ostro/data/ledger/element_type.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/io/arrays/zarr_1d.h"

namespace ostro::data {

// Thread-safe. Refers to the file system, which must outlive it.
class ArrayReader {
 public:
  // An array of `elements` of that type, if it is not in parts in chunks of `chunk`. Arrays of parts are
  // opened when they are first read: a cache may have thousands.
  static Result<ArrayReader> open(io::FileSystem& fs, ArraySource source, ElementType type, int64_t elements,
                                  int64_t chunk);
  ArrayReader(ArrayReader&&) noexcept;
  ~ArrayReader();

  const ArraySource& source() const;
  // Elements [start, start + out.size() / size of one) as they are on disk. What was never written is an
  // error when `must_exist`, else 0.
  Status read(int64_t start, std::span<std::byte> out, bool must_exist) const;

 private:
  struct State;
  explicit ArrayReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::data
