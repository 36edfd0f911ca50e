#include "ostro/io/read/decoded_file.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "ostro/base/sha256.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

constexpr size_t kBlock = 128 << 10;  // bytes of a read, and of a piece of decompressed text
// the largest window that zstd writes; its decoder accepts only 27 by default
constexpr int kMaxWindowLog = 31;

// Reads a file block by block and hashes what it reads.
class BlockReader {
 public:
  BlockReader(std::unique_ptr<RandomAccessFile> file, int64_t offset)
      : file_(std::move(file)), block_(kBlock), offset_(offset), whole_(offset == 0) {}

  // The next block; empty at the end of the file.
  Result<std::span<const std::byte>> next() {
    const auto size = static_cast<size_t>(std::min<int64_t>(kBlock, file_->size() - offset_));
    const std::span<std::byte> bytes = std::span(block_).first(size);
    if (size > 0) RETURN_IF_ERROR(file_->read(offset_, bytes));
    if (whole_) hash_.update(bytes);
    offset_ += static_cast<int64_t>(size);
    return std::span<const std::byte>(bytes);
  }

  int64_t offset() const { return offset_; }  // position after the block last returned

  std::string sha256() { return whole_ ? to_hex(hash_.finish()) : ""; }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<std::byte> block_;
  int64_t offset_;
  bool whole_;
  Sha256 hash_;
};

class Plain final : public DecodedFile {
 public:
  explicit Plain(BlockReader input) : input_(std::move(input)) {}
  Result<bool> append_to(std::string& text) override {
    ASSIGN_OR_RETURN(const auto bytes, input_.next());
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return !bytes.empty();
  }
  int64_t stored_bytes() const override { return input_.offset(); }
  std::string file_sha256() override { return input_.sha256(); }

 private:
  BlockReader input_;
};

class Gzip final : public DecodedFile {
 public:
  explicit Gzip(BlockReader input) : input_(std::move(input)), output_(kBlock) {
    OSTRO_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "gzip: out of memory");
  }
  ~Gzip() override { inflateEnd(&stream_); }

  Result<bool> append_to(std::string& text) override {
    for (;;) {
      if (stream_.avail_in == 0) {
        ASSIGN_OR_RETURN(const auto bytes, input_.next());
        if (bytes.empty()) {
          return in_member_ ? Result<bool>(corrupt("the gzip stream is truncated")) : Result<bool>(false);
        }
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
        stream_.avail_in = static_cast<uInt>(bytes.size());
      }
      in_member_ = true;
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        return corrupt(fmt::format("damaged gzip stream: {}", stream_.msg != nullptr ? stream_.msg : "?"));
      }
      const size_t size = output_.size() - stream_.avail_out;
      text.append(output_.data(), size);
      if (code == Z_STREAM_END) {
        in_member_ = false;
        OSTRO_CHECK(inflateReset(&stream_) == Z_OK, "gzip: cannot start the next member");
      }
      if (size > 0) return true;
    }
  }
  int64_t stored_bytes() const override { return input_.offset() - static_cast<int64_t>(stream_.avail_in); }
  std::string file_sha256() override { return input_.sha256(); }

 private:
  BlockReader input_;
  std::vector<char> output_;
  z_stream stream_{};
  bool in_member_ = false;
};

class Zstd final : public DecodedFile {
 public:
  explicit Zstd(BlockReader input)
      : input_(std::move(input)), output_(kBlock), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    OSTRO_CHECK(stream_ != nullptr, "zstd: out of memory");
    // Accept files of `zstd --long=31`, too. A frame takes only as much memory as its own window needs.
    const size_t code = ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    OSTRO_CHECK(!ZSTD_isError(code), "zstd: {}", ZSTD_getErrorName(code));
  }

  Result<bool> append_to(std::string& text) override {
    for (;;) {
      // First take the output that the decoder still holds from the last input.
      if (in_.pos == in_.size && !more_output_) {
        ASSIGN_OR_RETURN(const auto bytes, input_.next());
        if (bytes.empty()) {
          return in_frame_ ? Result<bool>(corrupt("the zstd stream is truncated")) : Result<bool>(false);
        }
        in_ = {bytes.data(), bytes.size(), 0};
      }
      const int64_t before = taken();
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      const size_t code = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(code)) return corrupt(fmt::format("damaged zstd stream: {}", ZSTD_getErrorName(code)));
      in_frame_ = code != 0;
      more_output_ = in_frame_ && out.pos == out.size;
      // When the output is full, the decoder may still read a block; its text comes with the next call.
      stored_bytes_ = more_output_ ? before : taken();
      text.append(output_.data(), out.pos);
      if (out.pos > 0) return true;
    }
  }
  int64_t stored_bytes() const override { return stored_bytes_; }
  std::string file_sha256() override { return input_.sha256(); }

 private:
  int64_t taken() const { return input_.offset() - static_cast<int64_t>(in_.size - in_.pos); }

  BlockReader input_;
  std::vector<char> output_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  int64_t stored_bytes_ = 0;
  bool in_frame_ = false, more_output_ = false;
};

}  // namespace

Result<std::unique_ptr<DecodedFile>> DecodedFile::open(FileSystem& fs, const std::string& path,
                                                       int64_t skip) {
  ASSIGN_OR_RETURN(auto file, fs.open(path));
  std::array<uint8_t, 4> magic{};
  const auto head = static_cast<size_t>(std::min<int64_t>(4, file->size()));
  RETURN_IF_ERROR(file->read(0, std::as_writable_bytes(std::span(magic)).first(head)));
  const bool skippable =
      (magic[0] & 0xf0) == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18;
  const bool gzip = magic[0] == 0x1f && magic[1] == 0x8b;
  const bool zstd =
      skippable || (magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd);
  if (!gzip && !zstd && (has_extension(path, ".gz") || has_extension(path, ".zst")))
    return corrupt(
        fmt::format("{}: is neither gzip nor zstd, although its name says that it is compressed", path));
  if ((gzip || zstd) && skip > 0)
    return invalid_argument(fmt::format("{}: is compressed, reading cannot start at byte {}", path, skip));
  if (skip > file->size())
    return corrupt(fmt::format("{}: ends at byte {}, but byte {} was expected", path, file->size(), skip));
  BlockReader input(std::move(file), skip);
  std::unique_ptr<DecodedFile> decoded;
  if (gzip)
    decoded = std::make_unique<Gzip>(std::move(input));
  else if (zstd)
    decoded = std::make_unique<Zstd>(std::move(input));
  else
    decoded = std::make_unique<Plain>(std::move(input));
  return decoded;
}

}  // namespace ostro::io
