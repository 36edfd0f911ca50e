#include "ostro/io/read/codecs.h"

#include <doctest/doctest.h>
#include <zstd.h>

#include <memory>

#include "ostro/base/sha256.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/read/crc32c.h"
#include "ostro/io/read/line_reader.h"

using namespace ostro;
using namespace ostro::io;

namespace {

Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

std::string sample_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += fmt::format("line {} {}\n", i, std::string(static_cast<size_t>(i % 97), 'x'));
  return text;
}

std::string compressed(Compression kind, std::string_view text) {
  auto bytes = compress({.kind = kind, .level = 3}, std::as_bytes(std::span(text)));
  REQUIRE(bytes.ok());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// All lines, or "error: ..." as the last.
std::vector<std::string> lines_of(std::string_view content, const std::string& name = "f.jsonl",
                                  int64_t max = 1 << 20) {
  MemoryFileSystem fs;
  auto file = fs.create(name);
  check_ok((*file)->append(content));
  auto reader = LineReader::open(fs, name, {.max_line = max});
  if (!reader.ok()) return {"error: " + reader.error().message()};
  std::vector<std::string> lines;
  for (;;) {
    std::string_view line;
    auto more = reader->next(line);
    if (!more.ok()) {
      lines.push_back("error: " + more.error().message());
      return lines;
    }
    if (!*more) return lines;
    lines.emplace_back(line);
  }
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("crc32c of the examples in RFC 3720, appendix B.4, cut anywhere") {
  CHECK(crc32c(Bytes(32, std::byte{0})) == 0x8a9136aau);
  CHECK(crc32c(Bytes(32, std::byte{0xff})) == 0x62a8ab43u);
  const Bytes digits = to_bytes("123456789");
  CHECK(crc32c(digits) == 0xe3069283u);
  for (size_t cut = 0; cut <= digits.size(); ++cut) {
    const auto all = std::span<const std::byte>(digits);
    CHECK(crc32c(all.subspan(cut), crc32c(all.first(cut))) == 0xe3069283u);
  }
}

TEST_CASE("crc32c of a long text is that of its pieces, wherever it is cut") {
  std::string text;
  for (int i = 0; text.size() < 80000; ++i) text += fmt::format("{} ", i * i);
  const Bytes bytes = to_bytes(text);
  const std::span<const std::byte> all(bytes);
  for (const size_t size :
       {size_t{12287}, size_t{12288}, size_t{12289}, size_t{24576}, size_t{40001}, all.size()})
    for (const size_t begin : {size_t{0}, size_t{3}}) {
      const auto part = all.first(size).subspan(begin);
      uint32_t by_pieces = 0;  // too short for the fast way
      for (size_t i = 0; i < part.size(); i += 7)
        by_pieces = crc32c(part.subspan(i, std::min<size_t>(7, part.size() - i)), by_pieces);
      CHECK(crc32c(part) == by_pieces);
      CHECK(crc32c(part.subspan(5000), crc32c(part.first(5000))) == by_pieces);
    }
}

TEST_CASE("every codec gives back what it took, and refuses other sizes, cuts and flips") {
  const Bytes data = to_bytes(sample_text(200));
  for (const Compression kind :
       {Compression::kNone, Compression::kZstd, Compression::kGzip, Compression::kBlosc}) {
    CAPTURE(static_cast<int>(kind));
    const auto packed = compress({.kind = kind, .level = 5, .item_size = 4}, data);
    REQUIRE(packed.ok());
    Bytes out(data.size());
    check_ok(decompress(kind, *packed, out));
    CHECK(out == data);
    Bytes small(data.size() - 1), large(data.size() + 1);
    CHECK(decompress(kind, *packed, small).error().code() == ErrorCode::kCorrupt);
    CHECK(decompress(kind, *packed, large).error().code() == ErrorCode::kCorrupt);
    for (size_t size = 0; size < packed->size(); ++size) {
      CHECK_FALSE(decompress(kind, std::span(*packed).first(size), out).ok());
    }
    for (size_t at = 0; at < packed->size(); ++at) {  // some flips decode to other bytes; none may crash
      Bytes flipped = *packed;
      flipped[at] ^= std::byte{0x10};
      const Status status = decompress(kind, flipped, out);
      if (kind == Compression::kGzip && at >= 10) CHECK_FALSE(status.ok());
    }
    const auto empty = compress({.kind = kind}, {});
    REQUIRE(empty.ok());
    check_ok(decompress(kind, *empty, {}));
  }
  CHECK(compress({.kind = Compression::kBlosc, .blosc_name = "nope"}, data).error().code() ==
        ErrorCode::kUnsupported);
  CHECK(compress({.kind = Compression::kGzip, .level = 11}, data).error().code() ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("lines: ends, empty lines, byte order mark") {
  CHECK(lines_of("") == Lines{});
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("a\nb") == Lines{"a", "b"});
  CHECK(lines_of("a\n\nb\n") == Lines{"a", "", "b"});
  CHECK(lines_of("\xef\xbb\xbf{}\r\n\xef\xbb\xbf\n") == Lines{"{}", "\xef\xbb\xbf"});
  CHECK(lines_of(std::string(300 << 10, 'x') + "\ny", "f", 1 << 20).size() == 2);
  const Lines too_long = lines_of("ok\n" + std::string(300 << 10, 'x'), "f", 1000);
  CHECK(too_long.back() == "error: f: line 2 is longer than 1000 bytes");
}

TEST_CASE("lines of compressed files: several members, truncation, damage") {
  const std::string text = sample_text(20000);
  const Lines plain = lines_of(text);
  CHECK(plain.size() == 20000);
  for (const Compression kind : {Compression::kGzip, Compression::kZstd}) {
    const std::string packed = compressed(kind, text);
    CHECK(lines_of(packed) == plain);
    const std::string half = compressed(kind, text.substr(0, 12345)) + compressed(kind, text.substr(12345));
    CHECK(lines_of(half) == plain);
    for (const size_t cut : {packed.size() - 1, packed.size() / 2, size_t{20}}) {
      const Lines lines = lines_of(packed.substr(0, cut));
      CHECK(lines.back().find("stream is truncated") != std::string::npos);
      CHECK(lines.back().find("f.jsonl: after line") != std::string::npos);
    }
    const std::string trailing = packed + "garbage that is no member";
    CHECK(lines_of(trailing).back().starts_with("error: f.jsonl: after line"));
    CHECK(lines_of(compressed(kind, "")) == Lines{});
  }
  CHECK(lines_of("{}", "f.jsonl.gz").back().starts_with("error: f.jsonl.gz: is neither gzip nor zstd"));
}

TEST_CASE("lines of zstd files with the longest windows") {
  const std::string text = sample_text(3000);
  for (const int window_log : {27, 28, 31}) {
    CAPTURE(window_log);
    const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> stream(ZSTD_createCCtx(), ZSTD_freeCCtx);
    REQUIRE_FALSE(ZSTD_isError(ZSTD_CCtx_setParameter(stream.get(), ZSTD_c_windowLog, window_log)));
    // Without the size of the text, which would shrink the window.
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    REQUIRE_FALSE(ZSTD_isError(ZSTD_compressStream2(stream.get(), &out, &in, ZSTD_e_flush)));
    REQUIRE(ZSTD_compressStream2(stream.get(), &out, &in, ZSTD_e_end) == 0);
    packed.resize(out.pos);
    // The frame's header says so: behind the magic number and a byte of flags stands log - 10, times 8.
    REQUIRE((static_cast<uint8_t>(packed[5]) >> 3) == window_log - 10);
    CHECK(lines_of(packed) == lines_of(text));
  }
}

TEST_CASE("lines: where they lie, starting behind some, passing over long ones") {
  const std::string text =
      "\xef\xbb\xbf{1}\r\n\n" + std::string(300 << 10, 'x') + "\r\nfour\n" + std::string(2000, 'y');
  MemoryFileSystem fs;
  check_ok((*fs.create("plain"))->append(text));
  check_ok((*fs.create("packed.gz"))->append(compressed(Compression::kGzip, text)));
  struct Line {
    std::string text;
    int64_t number, begin, bytes, next;
    bool operator==(const Line&) const = default;
  };
  const auto read = [&fs](const std::string& path, const LineOptions& options) {
    auto reader = LineReader::open(fs, path, options);
    REQUIRE(reader.ok());
    std::vector<Line> lines;
    std::string_view line;
    for (;;) {
      auto more = reader->next(line);
      REQUIRE(more.ok());
      if (!*more) break;
      lines.push_back({std::string(line), reader->line_number(), reader->line_begin(), reader->line_bytes(),
                       reader->next_byte()});
    }
    const bool whole = options.skip_bytes == 0;
    CHECK(reader->file_sha256() == (whole ? sha256_hex(*fs.read_file(path)) : ""));
    return lines;
  };
  const int64_t long_bytes = 300 << 10, size = static_cast<int64_t>(text.size());
  const std::vector<Line> all = {{"{1}", 1, 3, 3, 8},
                                 {"", 2, 8, 0, 9},
                                 {"", 3, 9, long_bytes, long_bytes + 11},
                                 {"four", 4, long_bytes + 11, 4, long_bytes + 16},
                                 {"", 5, long_bytes + 16, 2000, size}};
  for (const char* path : {"plain", "packed.gz"}) {
    CHECK(read(path, {.max_line = 1000, .pass_long = true}) == all);
    for (int64_t skip = 0; skip <= 5; ++skip) {
      const auto from = all.begin() + skip;
      CHECK(read(path, {.max_line = 1000, .pass_long = true, .skip_lines = skip}) ==
            std::vector<Line>(from, all.end()));
      if (path != std::string("plain") || skip == 0) continue;
      CHECK(read(path, {.max_line = 1000,
                        .pass_long = true,
                        .skip_lines = skip,
                        .skip_bytes = all[static_cast<size_t>(skip - 1)].next}) ==
            std::vector<Line>(from, all.end()));
    }
  }
  CHECK(LineReader::open(fs, "plain", {.skip_lines = 6}).error().message() ==
        "plain: has 5 lines, but line 6 was read before");
  CHECK_FALSE(LineReader::open(fs, "packed.gz", {.skip_lines = 1, .skip_bytes = 8}).ok());
  CHECK_FALSE(LineReader::open(fs, "plain", {.skip_lines = 9, .skip_bytes = size + 1}).ok());
}
