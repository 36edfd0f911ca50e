#include "ostro/infer/paged_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::infer {

using ir::kPageSlots;
using runtime::Buffer;

namespace {

int64_t pages_of(int64_t positions) { return (positions + kPageSlots - 1) / kPageSlots; }

}  // namespace

Result<PagedCache> PagedCache::create(const ir::Shape& one, int64_t layers, const RowLimits& limits,
                                      bool in_place, runtime::Memory& memory) {
  OSTRO_CHECK(one.axes.size() == 4, "{} is no [batch, key_pos, kv_heads, head_dim]", one.str());
  if (limits.positions < 2)
    return invalid_argument(fmt::format("room for {} positions; at least 2 are needed", limits.positions));
  PagedCache out;
  out.most_sequences_ = limits.sequences;
  out.entries_ = pages_of(limits.positions);
  out.in_place_ = in_place;
  const int64_t pages = limits.pages > 0 ? limits.pages : limits.sequences * out.entries_;
  if (pages < out.entries_)
    return invalid_argument(fmt::format(
        "a cache of {} pages of {} positions; a text of {} positions needs {}, so this is the least", pages,
        kPageSlots, limits.positions, out.entries_));
  const ir::Axis page{"page", pages + (in_place ? 0 : 1)}, slot{"slot", kPageSlots}, heads = one.axes[2],
                                                                                     dim = one.axes[3];
  out.row_bytes_ = static_cast<size_t>(one.bytes() / (one.axes[0].size * one.axes[1].size));
  const ir::Shape plain{one.dtype, {page, slot, heads, dim}};
  const ir::Shape keys = in_place ? ir::Shape{one.dtype, {page, heads, dim, slot}} : plain;
  const ir::Shape values = in_place ? ir::Shape{one.dtype, {page, heads, slot, dim}} : plain;
  ASSIGN_OR_RETURN(out.pool_, PagePool::create(keys, values, layers, memory));
  if (!in_place) out.blank_ = out.pool_.take();
  return out;
}

Result<int64_t> PagedCache::open() {
  if (static_cast<int64_t>(sequences_.size()) >= most_sequences_)
    return invalid_argument(fmt::format("{} sequences are open, the most", most_sequences_));
  int64_t id = 0;
  while (sequences_.contains(id)) ++id;
  sequences_[id] = {};
  return id;
}

// No sequence writes into the last page any more; one that finds it copies it.
void PagedCache::close(int64_t sequence) {
  const Sequence& s = sequences_.at(sequence);
  const auto last = std::span(s.tokens).subspan(s.names.size() * static_cast<size_t>(kPageSlots));
  if (s.root && !s.lost && std::ssize(last) >= PrefixTree::kLeastTokens)
    keep_behind(s, last, s.pages[s.names.size()]);
  for (const int32_t page : s.pages) pool_.drop(page);
  sequences_.erase(sequence);
}

int64_t PagedCache::missing(const RowChunk& chunk) const {
  const Sequence& s = sequences_.at(chunk.sequence);
  return pages_of(std::ssize(s.tokens) + std::ssize(chunk.tokens)) - std::ssize(s.pages);
}

bool PagedCache::has_room(std::span<const RowChunk> chunks, int64_t tokens) const {
  int64_t needed = pages_of(tokens);
  for (const RowChunk& chunk : chunks) needed += missing(chunk);
  return needed <= pool_.free() + pool_.only_kept();
}

// Every end of the tree that only the tree holds can go, and then what was in front of it: who holds a page
// of the tree holds all in front of it (name_pages).
bool PagedCache::make_free(int64_t pages) {
  if (pages > pool_.free() + pool_.only_kept()) return false;
  while (pages > pool_.free())
    pool_.let_go(tree_.evict([this](int32_t page) { return pool_.is_only_kept(page); }).value());
  return true;
}

// Whole pages are shared. The positions behind them are copied into a page that only this sequence has, if
// one can be had: the sequence will write there.
int64_t PagedCache::reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) {
  Sequence& s = sequences_.at(sequence);
  OSTRO_CHECK(s.tokens.empty(), "sequence {} has {} tokens already", sequence, s.tokens.size());
  s.root = PrefixTree::root(owner);
  const PrefixTree::Found found = tree_.find(*s.root, tokens);
  s.pages = found.pages;
  for (const int32_t page : s.pages) pool_.share(page);
  int64_t rows = std::ssize(s.pages) * kPageSlots;
  if (found.rows > 0) {
    pool_.share(found.part);  // so that it is not what makes room for its copy
    if (const auto page = copied(found.part, found.rows); page.ok()) {
      s.pages.push_back(*page);
      rows += found.rows;
    }
    pool_.drop(found.part);
  }
  s.tokens.assign(tokens.begin(), tokens.begin() + rows);
  s.names = found.names;
  return rows;
}

PrefixTree::Inserted PagedCache::keep_behind(const Sequence& s, std::span<const int32_t> tokens,
                                             int32_t page) {
  const PrefixTree::Inserted out = tree_.insert(*s.root, s.last_name(), tokens, page);
  if (out.replaced) pool_.let_go(*out.replaced);
  if (out.done) pool_.keep(page);
  return out;
}

// Whole pages that have no name get one, and are in the tree from then on. Where the tree has the page
// already, the sequence goes on with that one, which holds the same bits: so it holds all pages in front of
// those that it puts into the tree, and no page of the tree is kept by others behind it alone.
void PagedCache::name_pages(Sequence& s) {
  if (!s.root || s.lost) return;
  for (int64_t page = std::ssize(s.names); (page + 1) * kPageSlots <= std::ssize(s.tokens); ++page) {
    const auto ids = std::span(s.tokens).subspan(static_cast<size_t>(page * kPageSlots), kPageSlots);
    int32_t& number = s.pages[static_cast<size_t>(page)];
    const PrefixTree::Inserted in = keep_behind(s, ids, number);
    if (in.there) {
      pool_.share(*in.there);
      pool_.drop(std::exchange(number, *in.there));
    }
    s.names.push_back(in.name);
  }
}

CacheFacts PagedCache::facts() const {
  const int64_t pages = pool_.pages() - (in_place_ ? 0 : 1), kept = pool_.only_kept();
  return {pages, pool_.bytes(), pages - pool_.free() - kept, kept};
}

Status PagedCache::begin(std::span<const RowChunk> chunks) {
  for (const RowChunk& chunk : chunks)
    if (sequences_.at(chunk.sequence).lost)
      return invalid_argument(
          fmt::format("sequence {} was lost when a step failed; close it", chunk.sequence));
  int64_t needed = 0;
  for (const RowChunk& chunk : chunks) needed += missing(chunk);
  if (!make_free(needed))
    return invalid_argument(
        fmt::format("{} pages of {} positions are free, too few for this step", pool_.free(), kPageSlots));
  RETURN_IF_ERROR(pool_.restore());
  for (const RowChunk& chunk : chunks)
    for (int64_t more = missing(chunk); more > 0; --more) {
      const int32_t page = pool_.take();
      if (const Status cleared = in_place_ ? Status() : pool_.clear(page); !cleared.ok()) {
        pool_.drop(page);
        return cleared;
      }
      sequences_.at(chunk.sequence).pages.push_back(page);
    }
  return {};
}

void PagedCache::end(std::span<const RowChunk> chunks) {
  for (const RowChunk& chunk : chunks) {
    Sequence& s = sequences_.at(chunk.sequence);
    s.tokens.insert(s.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
    name_pages(s);
  }
}

void PagedCache::fail() {
  for (auto& [id, sequence] : sequences_) sequence.lost = true;
  for (const int32_t page : tree_.clear()) pool_.let_go(page);
}

Result<int32_t> PagedCache::copied(int32_t page, int64_t rows) {
  if (!make_free(1)) return invalid_argument("no page is free for the copy of a sequence");
  const int32_t out = pool_.take();
  if (const Status status = pool_.copy(page, out, rows); !status.ok()) {
    pool_.drop(out);
    return status.error();
  }
  return out;
}

Status PagedCache::copy(int64_t from, int64_t to, int64_t count) {
  const Sequence& source = sequences_.at(from);
  Sequence& target = sequences_.at(to);
  OSTRO_CHECK(count <= std::ssize(source.tokens) && target.tokens.empty(),
              "{} positions of {} copied to a sequence with {}", count, source.tokens.size(),
              target.tokens.size());
  const int64_t whole = count / kPageSlots, rest = count % kPageSlots;
  std::vector<int32_t> pages(source.pages.begin(), source.pages.begin() + whole);
  if (rest > 0) {
    ASSIGN_OR_RETURN(const int32_t last, copied(source.pages[static_cast<size_t>(whole)], rest));
    pages.push_back(last);
  }
  for (int64_t page = 0; page < whole; ++page) pool_.share(pages[static_cast<size_t>(page)]);
  target.pages = std::move(pages);
  target.tokens.assign(source.tokens.begin(), source.tokens.begin() + count);
  target.lost = source.lost;
  target.root = source.root;
  target.names.assign(source.names.begin(), source.names.begin() + std::min(std::ssize(source.names), whole));
  return {};
}

Status PagedCache::write(int64_t layer, int64_t sequence, int64_t at, std::span<const std::byte> keys,
                         std::span<const std::byte> values) {
  const auto end = at + static_cast<int64_t>(keys.size() / row_bytes_);
  for (int64_t begin = at; begin < end;) {
    const int64_t count = std::min(end, (begin / kPageSlots + 1) * kPageSlots) - begin;
    const int64_t page = pages(sequence)[static_cast<size_t>(begin / kPageSlots)];
    for (const auto& [array, rows] : {std::pair{&pool_.keys(layer), keys}, {&pool_.values(layer), values}}) {
      const int64_t places = array->shape().axes[0].size * kPageSlots;
      const ir::Shape flat{array->shape().dtype,
                           {{"row", places}, {"element", array->shape().count() / places}}};
      RETURN_IF_ERROR(array->with_shape(flat)
                          .rows(page * kPageSlots + begin % kPageSlots, count)
                          .write(rows.subspan(static_cast<size_t>(begin - at) * row_bytes_,
                                              static_cast<size_t>(count) * row_bytes_)));
    }
    begin += count;
  }
  return {};
}

}  // namespace ostro::infer
