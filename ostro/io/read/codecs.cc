#include "ostro/io/read/codecs.h"

#include <blosc.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "ostro/base/out_of_memory.h"

namespace ostro::io {
namespace {

Error wrong_size(const char* codec, size_t wanted, const char* what) {
  return corrupt(fmt::format("{} data {} than the {} bytes that were expected", codec, what, wanted));
}

Result<Bytes> compress_zstd(int level, std::span<const std::byte> bytes) {
  if (level > ZSTD_maxCLevel() || level < ZSTD_minCLevel()) {
    return invalid_argument(fmt::format("zstd has no level {}", level));
  }
  Bytes out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size))
    return Error(ErrorCode::kInternal, fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  out.resize(size);
  return out;
}

Status decompress_zstd(std::span<const std::byte> bytes, std::span<std::byte> out) {
  const size_t size = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size)) return corrupt(fmt::format("damaged zstd data: {}", ZSTD_getErrorName(size)));
  return size == out.size() ? Status() : Status(wrong_size("zstd", out.size(), "shorter"));
}

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip header and CRC-32

Result<Bytes> compress_gzip(int level, std::span<const std::byte> bytes) {
  if (level < 0 || level > 9) return invalid_argument(fmt::format("gzip has no level {}", level));
  if (bytes.size() > UINT32_MAX) return invalid_argument("gzip: more than 4 GiB in one buffer");
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Error(ErrorCode::kInternal, "gzip: cannot start");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return Error(ErrorCode::kInternal, "gzip: cannot finish");
  out.resize(stream.total_out);
  return out;
}

Status decompress_gzip(std::span<const std::byte> bytes, std::span<std::byte> out) {
  if (bytes.size() > UINT32_MAX || out.size() > UINT32_MAX) return corrupt("gzip data: more than 4 GiB");
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Error(ErrorCode::kInternal, "gzip: cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::byte none;  // zlib needs a valid pointer even when it may write nothing
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &none : out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&stream, Z_FINISH);
  if (code == Z_STREAM_END) {
    if (stream.avail_in != 0)
      return corrupt(fmt::format("gzip data: {} bytes after its end", stream.avail_in));
    return stream.avail_out == 0 ? Status() : Status(wrong_size("gzip", out.size(), "shorter"));
  }
  if (code == Z_BUF_ERROR && stream.avail_out == 0) return wrong_size("gzip", out.size(), "longer (or cut)");
  return corrupt(
      fmt::format("damaged gzip data: {}", stream.msg != nullptr ? stream.msg : "it ends too early"));
}

Result<Bytes> compress_blosc(const Compressor& compressor, std::span<const std::byte> bytes) {
  if (compressor.level < 0 || compressor.level > 9) {
    return invalid_argument(fmt::format("blosc has no level {}", compressor.level));
  }
  if (bytes.size() > BLOSC_MAX_BUFFERSIZE) return invalid_argument("blosc: more than 2 GiB in one chunk");
  if (compressor.item_size < 1 || compressor.item_size > BLOSC_MAX_TYPESIZE) {
    return invalid_argument(fmt::format("blosc: item size {} is not in 1..255", compressor.item_size));
  }
  if (blosc_compname_to_compcode(compressor.blosc_name.c_str()) < 0) {
    return unsupported(fmt::format("this build of blosc has no compressor \"{}\"", compressor.blosc_name));
  }
  Bytes out(bytes.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(compressor.level, compressor.blosc_shuffle,
                                      static_cast<size_t>(compressor.item_size), bytes.size(), bytes.data(),
                                      out.data(), out.size(), compressor.blosc_name.c_str(),
                                      /*blocksize=*/0, /*numinternalthreads=*/1);
  if (size <= 0) return Error(ErrorCode::kInternal, fmt::format("blosc: cannot compress (code {})", size));
  out.resize(static_cast<size_t>(size));
  return out;
}

// blosc works on some blocks at a time and does not look whether it gets the memory for them: without it the
// process would be killed. Throws OutOfMemory.
void require_memory_of_blosc(std::span<const std::byte> bytes) {
  constexpr size_t kBlocks = 3, kBeside = size_t{64} << 10;
  size_t whole = 0, compressed = 0, block = 0;
  blosc_cbuffer_sizes(bytes.data(), &whole, &compressed, &block);
  if (block > whole) return;  // a damaged header, which blosc refuses
  const size_t wanted = kBlocks * block + kBeside;
  void* const there = std::malloc(wanted);
  if (there == nullptr) throw OutOfMemory(wanted);
  std::free(there);
}

Status decompress_blosc(std::span<const std::byte> bytes, std::span<std::byte> out) {
  size_t size = 0;
  if (bytes.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(bytes.data(), bytes.size(), &size) != 0) {
    return corrupt("damaged blosc data: its header does not fit its length");
  }
  if (size != out.size()) return wrong_size("blosc", out.size(), size < out.size() ? "shorter" : "longer");
  if (size == 0) return {};
  require_memory_of_blosc(bytes);
  const int code = blosc_decompress_ctx(bytes.data(), out.data(), out.size(), /*numinternalthreads=*/1);
  if (code < 0 || static_cast<size_t>(code) != out.size()) return corrupt("damaged blosc data");
  return {};
}

// Decodes only the blocks that are needed. False when blosc cannot decode this range alone.
Result<bool> decompress_blosc_range(std::span<const std::byte> bytes, int64_t whole, int64_t begin,
                                    std::span<std::byte> out) {
  size_t size = 0, item = 0;
  int flags = 0;
  if (bytes.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(bytes.data(), bytes.size(), &size) != 0) {
    return corrupt("damaged blosc data: its header does not fit its length");
  }
  if (static_cast<int64_t>(size) != whole) return wrong_size("blosc", static_cast<size_t>(whole), "other");
  blosc_cbuffer_metainfo(bytes.data(), &item, &flags);
  if (item == 0 || static_cast<size_t>(begin) % item != 0 || out.size() % item != 0) return false;
  const int count = static_cast<int>(out.size() / item);
  require_memory_of_blosc(bytes);
  const int code =
      blosc_getitem(bytes.data(), static_cast<int>(static_cast<size_t>(begin) / item), count, out.data());
  if (code < 0 || static_cast<size_t>(code) != out.size()) return corrupt("damaged blosc data");
  return true;
}

}  // namespace

Result<Bytes> compress(const Compressor& compressor, std::span<const std::byte> bytes) {
  switch (compressor.kind) {
    case Compression::kNone: return Bytes(bytes.begin(), bytes.end());
    case Compression::kZstd: return compress_zstd(compressor.level, bytes);
    case Compression::kGzip: return compress_gzip(compressor.level, bytes);
    case Compression::kBlosc: return compress_blosc(compressor, bytes);
  }
  return Error(ErrorCode::kInternal, "unknown compression");
}

Status decompress(Compression kind, std::span<const std::byte> bytes, std::span<std::byte> out) {
  switch (kind) {
    case Compression::kNone:
      if (bytes.size() != out.size()) {
        return wrong_size("raw", out.size(), bytes.size() < out.size() ? "shorter" : "longer");
      }
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size());
      return {};
    case Compression::kZstd: return decompress_zstd(bytes, out);
    case Compression::kGzip: return decompress_gzip(bytes, out);
    case Compression::kBlosc: return decompress_blosc(bytes, out);
  }
  return Error(ErrorCode::kInternal, "unknown compression");
}

Status decompress_range(Compression kind, std::span<const std::byte> bytes, int64_t whole, int64_t begin,
                        std::span<std::byte> out) {
  OSTRO_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= whole, "bytes [{}, {}) of {}", begin,
              begin + static_cast<int64_t>(out.size()), whole);
  if (out.empty()) return {};
  if (static_cast<int64_t>(out.size()) == whole) return decompress(kind, bytes, out);
  if (kind == Compression::kBlosc) {
    ASSIGN_OR_RETURN(const bool done, decompress_blosc_range(bytes, whole, begin, out));
    if (done) return {};
  }
  Bytes all(static_cast<size_t>(whole));
  RETURN_IF_ERROR(decompress(kind, bytes, all));
  std::memcpy(out.data(), all.data() + begin, out.size());
  return {};
}

}  // namespace ostro::io
