// PagePool: the pages in which all sequences keep their keys and values. A page has 128 positions in all
// layers; sequences that begin alike may hold the same one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// The arrays are made once. A program that writes into them gets them by move and gives them back, so they
// are never copied. Not thread-safe.
class PagePool {
 public:
  // `keys`, `values`: the arrays of one layer, both with the leading axis "page". Error: the memory has no
  // room.
  static Result<PagePool> create(const ir::Shape& keys, const ir::Shape& values, int64_t layers,
                                 runtime::Memory& memory);

  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t pages() const { return static_cast<int64_t>(holders_.size()); }
  // Bytes of all arrays.
  int64_t bytes() const;
  // A page with one holder; one has to be free. It may hold anything.
  int32_t take();
  void share(int32_t page);
  // One holder less; a page without holders is free.
  void drop(int32_t page);
  // One holder more, who keeps the page for texts that may come; a page has at most one such holder.
  void keep(int32_t page);
  // This holder less.
  void let_go(int32_t page);
  // Whether a page that is kept has no other holder, and how many such pages there are.
  bool is_only_kept(int32_t page) const;
  int64_t only_kept() const { return only_kept_; }

  runtime::Buffer& keys(int64_t layer) { return layers_[static_cast<size_t>(layer)].keys; }
  runtime::Buffer& values(int64_t layer) { return layers_[static_cast<size_t>(layer)].values; }
  // Copies the first `count` positions of a page in all layers. The others become zeros where the axis "slot"
  // is the one behind "page"; elsewhere they may hold anything.
  Status copy(int32_t from, int32_t to, int64_t count);
  // All bits of a page become zero.
  Status clear(int32_t page);
  // Arrays that a program took and did not give back are made again, as zeros.
  Status restore();

 private:
  struct Layer {
    runtime::Buffer keys, values;
  };

  ir::Shape key_shape_, value_shape_;
  runtime::Memory* memory_ = nullptr;
  std::vector<Layer> layers_;
  std::vector<int64_t> holders_;
  std::vector<bool> kept_;
  int64_t only_kept_ = 0;
  std::vector<int32_t> free_;
};

}  // namespace ostro::infer
