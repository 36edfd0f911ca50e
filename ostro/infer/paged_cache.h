// PagedCache: the keys and values of a runner's sequences. A sequence is a list of pages of one pool. Pages
// of texts that may come again stay in a tree until their memory is needed.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/infer/page_pool.h"
#include "ostro/infer/prefix_tree.h"
#include "ostro/infer/row_runner.h"

namespace ostro::infer {

// Pages of a position that is not there yet are zeros where programs gather pages (`in_place` false), since
// what they gather is a contiguous cache (numerics.md N16); otherwise they may hold anything. Not
// thread-safe.
class PagedCache {
 public:
  // `one`: keys or values of one layer, [batch, key_pos, kv_heads, head_dim] of any sizes of the first two.
  // `in_place`: programs write into pools and read from them as they lie (attend_pages); their axes are in
  // the order that is fastest for it. Otherwise pools are [page, slot, kv_heads, head_dim], rows are written
  // by write(), and the page blank() is only zeros. Errors: fewer than 2 positions, or pages for less than
  // one whole sequence; no room in the memory.
  static Result<PagedCache> create(const ir::Shape& one, int64_t layers, const RowLimits& limits,
                                   bool in_place, runtime::Memory& memory);

  // As RowRunner has them.
  Result<int64_t> open();
  void close(int64_t sequence);
  int64_t length(int64_t sequence) const { return std::ssize(sequences_.at(sequence).tokens); }
  Status copy(int64_t from, int64_t to, int64_t count);
  bool has_room(std::span<const RowChunk> chunks, int64_t tokens) const;
  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner);
  CacheFacts facts() const;

  // Before a step: the sequences get the pages that their new rows need. Errors: too few are free, or an
  // earlier step failed; nothing has changed then.
  Status begin(std::span<const RowChunk> chunks);
  // After it: the new rows count.
  void end(std::span<const RowChunk> chunks);
  // Instead of end(): pools may have been lost, and with them what all sequences hold.
  void fail();

  PagePool& pool() { return pool_; }
  std::span<const int32_t> pages(int64_t sequence) const { return sequences_.at(sequence).pages; }
  // Entries of a table of pages.
  int64_t entries() const { return entries_; }
  int32_t blank() const { return blank_; }
  // Writes rows of keys and values on the host to the positions from `at` on.
  Status write(int64_t layer, int64_t sequence, int64_t at, std::span<const std::byte> keys,
               std::span<const std::byte> values);
  // Bytes of one position in one layer's keys, and as many in its values.
  size_t row_bytes() const { return row_bytes_; }

 private:
  struct Sequence {
    std::vector<int32_t> pages;
    std::vector<int32_t> tokens;  // as many as count
    bool lost = false;
    // With reuse(): the root, and the names of its whole pages.
    std::optional<PrefixTree::Name> root = {};
    std::vector<PrefixTree::Name> names = {};

    const PrefixTree::Name& last_name() const { return names.empty() ? *root : names.back(); }
  };

  // Makes so many pages free. Returns false, and changes nothing, if they cannot be.
  bool make_free(int64_t pages);
  // A page with the first `rows` positions of another one, which has a holder. Error: none is free.
  Result<int32_t> copied(int32_t page, int64_t rows);
  void name_pages(Sequence& sequence);
  // Puts a page with these tokens behind those of the sequence that have names.
  PrefixTree::Inserted keep_behind(const Sequence& sequence, std::span<const int32_t> tokens, int32_t page);
  // Pages that the sequence of the chunk has not got.
  int64_t missing(const RowChunk& chunk) const;

  PagePool pool_;
  PrefixTree tree_;
  int64_t most_sequences_ = 0, entries_ = 0;
  int32_t blank_ = -1;
  bool in_place_ = false;
  size_t row_bytes_ = 0;
  std::map<int64_t, Sequence> sequences_;
};

}  // namespace ostro::infer
