// Pages of sequences: who holds them, what a copy shares, and what happens when there are too few.
#include "ostro/infer/paged_cache.h"

#include <doctest/doctest.h>

namespace ostro::infer {
namespace {

const ir::Shape kOne{ir::DType::f32, {{"batch", 1}, {"key_pos", 1}, {"kv_heads", 1}, {"head_dim", 2}}};

// Room for 4 texts of up to 500 positions, in `pages` pages.
PagedCache cache_of(int64_t pages, bool in_place = false) {
  return PagedCache::create(kOne, 2, {500, 4, 512, pages}, in_place, runtime::host_memory()).value();
}

// Adds tokens to a sequence as a step does.
Status feed(PagedCache& cache, int64_t sequence, const std::vector<int32_t>& tokens) {
  const RowChunk chunk{sequence, tokens, 0};
  RETURN_IF_ERROR(cache.begin({&chunk, 1}));
  cache.end({&chunk, 1});
  return {};
}

// The first of the keys at a position.
float key(PagedCache& cache, int64_t sequence, int64_t at) {
  const int64_t place = cache.pages(sequence)[static_cast<size_t>(at / 128)] * 128 + at % 128;
  return cache.pool().keys(0).as<float>()[static_cast<size_t>(2 * place)];
}

TEST_CASE("a copy shares whole pages, has the last one for itself, and all are free in the end") {
  PagedCache cache = cache_of(7);
  const int64_t free = cache.pool().free(), a = cache.open().value(), b = cache.open().value();
  check_ok(feed(cache, a, std::vector<int32_t>(300)));
  CHECK(cache.pool().free() == free - 3);
  std::vector<float> rows(600);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 2);
  check_ok(cache.write(0, a, 0, std::as_bytes(std::span(rows)), std::as_bytes(std::span(rows))));
  for (const int64_t at : {0, 127, 128, 299}) CHECK(key(cache, a, at) == static_cast<float>(at));
  check_ok(cache.copy(a, b, 290));
  CHECK(cache.length(b) == 290);
  CHECK(cache.pool().free() == free - 4);
  CHECK(cache.pages(b)[1] == cache.pages(a)[1]);
  CHECK(cache.pages(b)[2] != cache.pages(a)[2]);
  CHECK(key(cache, b, 289) == 289);
  for (int64_t at = 290; at < 384; ++at) CHECK(key(cache, b, at) == 0);  // not those of a
  check_ok(feed(cache, b, std::vector<int32_t>(1)));
  const std::vector<float> other = {-1, -1};
  check_ok(cache.write(0, b, 290, std::as_bytes(std::span(other)), std::as_bytes(std::span(other))));
  CHECK(key(cache, b, 290) == -1);
  CHECK(key(cache, a, 290) == 290);  // the control: with a shared page it were -1
  cache.close(a);
  CHECK(key(cache, b, 200) == 200);
  cache.close(b);
  CHECK(cache.pool().free() == free);
}

TEST_CASE(
    "too few pages are an error that changes nothing, and places of a page that is free again are zeros") {
  PagedCache cache = cache_of(4);
  const int64_t a = cache.open().value(), b = cache.open().value();
  check_ok(feed(cache, a, std::vector<int32_t>(400)));
  const std::vector<float> ones(800, 1.0F);
  check_ok(cache.write(0, a, 0, std::as_bytes(std::span(ones)), std::as_bytes(std::span(ones))));
  CHECK(feed(cache, b, {1}).error().message() == "0 pages of 128 positions are free, too few for this step");
  CHECK(cache.length(b) == 0);
  CHECK(cache.pages(b).empty());
  check_ok(feed(cache, a, std::vector<int32_t>(100)));
  cache.close(a);
  check_ok(feed(cache, b, {1}));
  CHECK(key(cache, b, 0) == 0);
  CHECK(key(cache, b, 127) == 0);
  CHECK(PagedCache::create(kOne, 2, {500, 4, 512, 3}, true, runtime::host_memory()).error().message() ==
        "a cache of 3 pages of 128 positions; a text of 500 positions needs 4, so this is the least");
  CHECK_FALSE(PagedCache::create(kOne, 2, {1, 4, 512, 3}, true, runtime::host_memory()).ok());
}

std::vector<int32_t> text(int32_t first, size_t count) {
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = first + static_cast<int32_t>(i);
  return out;
}

// Runs a text to its end and returns how many of its tokens were there.
int64_t run(PagedCache& cache, const std::vector<int32_t>& tokens, const char* owner) {
  const int64_t s = cache.open().value(), found = cache.reuse(s, tokens, owner);
  if (found < std::ssize(tokens)) check_ok(feed(cache, s, {tokens.begin() + found, tokens.end()}));
  cache.close(s);
  return found;
}

TEST_CASE("kept pages: found by owner and tokens, the least recently used goes first, held ones stay") {
  PagedCache cache = cache_of(6);
  CHECK(run(cache, text(0, 256), "a") == 0);
  CHECK(cache.facts().kept == 2);
  CHECK(run(cache, text(0, 256), "b") == 0);
  CHECK(run(cache, text(0, 250), "a") == 250);
  CHECK(cache.facts().kept == 4);
  std::vector<int32_t> late = text(0, 256);
  late[200] = 7;  // in the second page
  CHECK(run(cache, late, "a") == 200);
  CHECK(cache.facts().kept == 5);
  // b's pages are the oldest, the second first. The last page of c has too few tokens to be kept.
  CHECK(run(cache, text(9, 130), "c") == 0);
  CHECK(cache.facts().kept == 5);
  CHECK(run(cache, text(0, 256), "b") == 128);
  const int64_t held = cache.open().value();
  CHECK(cache.reuse(held, text(0, 130), "b") == 128);
  CHECK(cache.has_room({}, 5 * 128));  // all but the one that is held
  CHECK_FALSE(cache.has_room({}, 5 * 128 + 1));
  cache.close(held);
  cache.fail();
  CHECK(cache.facts().kept == 0);
  CHECK(cache.facts().held == 0);
}

TEST_CASE("a text goes on behind the last page of one that is over, and parts from any page, in its own") {
  PagedCache cache = cache_of(8);
  const int64_t first = cache.open().value();
  CHECK(cache.reuse(first, {}, "a") == 0);
  check_ok(feed(cache, first, text(0, 300)));
  std::vector<float> rows(600);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 2);
  check_ok(cache.write(0, first, 0, std::as_bytes(std::span(rows)), std::as_bytes(std::span(rows))));
  const auto parted_at = [](size_t place) {
    std::vector<int32_t> out = text(0, 310);
    out[place] = -1;
    return out;
  };
  const auto found = [&](const std::vector<int32_t>& tokens, const char* owner = "a") {
    const int64_t s = cache.open().value(), out = cache.reuse(s, tokens, owner);
    CHECK(cache.length(s) == out);
    for (int64_t at = 0; at < out; ++at) CHECK(key(cache, s, at) == static_cast<float>(at));
    for (int64_t at = out; at % 128 != 0; ++at) CHECK(key(cache, s, at) == 0);
    cache.close(s);
    return out;
  };
  CHECK(found(text(0, 310)) == 256);  // the last page is being written
  cache.close(first);
  CHECK(cache.facts().kept == 3);
  CHECK(found(text(0, 310)) == 300);
  CHECK(found(text(0, 290)) == 290);
  CHECK(found(parted_at(280)) == 280);
  CHECK(found(parted_at(272)) == 272);
  CHECK(found(parted_at(271)) == 256);  // too few for a copy
  CHECK(found(parted_at(200)) == 200);
  CHECK(found(parted_at(100)) == 100);
  CHECK(found(parted_at(0)) == 0);
  CHECK(found(text(0, 310), "b") == 0);
  CHECK(cache.facts().kept == 3);  // what begins a page that is there is not kept beside it

  // A page that begins with all of another one that is not whole stands in its place.
  CHECK(run(cache, text(0, 310), "a") == 300);
  CHECK(cache.facts().kept == 3);
  CHECK(run(cache, parted_at(305), "a") == 305);
  CHECK(cache.facts().kept == 4);
  CHECK(run(cache, text(0, 384), "a") == 310);
  CHECK(cache.facts().kept == 4);
  CHECK(run(cache, parted_at(305), "a") == 310);
  CHECK(run(cache, text(0, 384), "a") == 384);
}

TEST_CASE("the last page of a copy is kept, and makes room for that of a copy") {
  PagedCache cache = PagedCache::create(kOne, 2, {384, 4, 512, 4}, false, runtime::host_memory()).value();
  const int64_t a = cache.open().value(), b = cache.open().value();
  CHECK(cache.reuse(a, {}, "a") == 0);
  check_ok(feed(cache, a, text(0, 300)));
  check_ok(cache.copy(a, b, 290));
  const int64_t c = cache.open().value();
  CHECK(cache.copy(a, c, 290).error().message() == "no page is free for the copy of a sequence");
  CHECK(cache.length(c) == 0);
  cache.close(c);
  cache.close(b);
  CHECK(cache.facts().kept == 1);  // the others are held
  cache.close(a);
  CHECK(cache.facts().kept == 3);  // what a has begins with that
  CHECK(run(cache, text(1000, 100), "a") == 0);
  CHECK(cache.facts().kept == 4);
  CHECK(run(cache, text(0, 310), "a") == 300);
  CHECK(run(cache, text(1000, 100), "a") == 0);
}

TEST_CASE("where there is no page for a copy, whole pages are what a text gets") {
  PagedCache cache = PagedCache::create(kOne, 2, {384, 4, 512, 3}, false, runtime::host_memory()).value();
  CHECK(run(cache, text(0, 300), "a") == 0);
  CHECK(cache.facts().kept == 3);
  CHECK(run(cache, text(0, 310), "a") == 256);
  CHECK(cache.facts().kept == 3);
  const int64_t lost = cache.open().value();
  CHECK(cache.reuse(lost, {}, "b") == 0);
  check_ok(feed(cache, lost, text(0, 20)));
  cache.fail();
  cache.close(lost);
  CHECK(cache.facts().kept == 0);  // of a sequence that was lost, too
}

// The control: with a page of its own beside the kept one, the text would lack its last page.
TEST_CASE("a text that is run again in the least room takes the pages that are kept") {
  PagedCache cache = PagedCache::create(kOne, 2, {384, 4, 512, 3}, false, runtime::host_memory()).value();
  std::vector<int32_t> tokens(384);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  for (int again = 0; again < 3; ++again) {
    const int64_t s = cache.open().value();
    CHECK(cache.reuse(s, {}, "a") == 0);
    for (size_t at = 0; at < tokens.size(); at += 128)
      check_ok(feed(cache, s,
                    {tokens.begin() + static_cast<std::ptrdiff_t>(at),
                     tokens.begin() + static_cast<std::ptrdiff_t>(at) + 128}));
    CHECK(cache.facts().held == 3);
    cache.close(s);
    CHECK(cache.facts().kept == 3);
  }
}

TEST_CASE("after a step that failed sequences can only be closed, and the pools are there again") {
  PagedCache cache = cache_of(8, true);
  const int64_t a = cache.open().value();
  check_ok(feed(cache, a, {1, 2, 3}));
  {
    const runtime::Buffer taken = std::move(cache.pool().keys(1));
    cache.fail();
  }
  CHECK(feed(cache, a, {4}).error().message() == "sequence 0 was lost when a step failed; close it");
  cache.close(a);
  const int64_t b = cache.open().value();
  check_ok(feed(cache, b, {1}));
  CHECK(cache.pool().keys(1).valid());
}

}  // namespace
}  // namespace ostro::infer
