#include "ostro/grok/pickle/writer.h"

#include <map>
#include <string_view>

#include "ostro/grok/pickle/opcodes.h"

namespace ostro::grok {
namespace {

// CPython begins a new frame before a value once the current one has this many bytes, and writes bytes
// objects of this size outside of frames. A frame of less than four bytes is left out.
constexpr int64_t kFrameTarget = 64 * 1024;
constexpr int64_t kFrameMinimum = 4;
constexpr size_t kFrameHeader = 9;

class Pickler {
 public:
  explicit Pickler(PickleTexts& out) : out_(out) {
    out_.texts.emplace_back();
    op(kProto);
    op(4);
    begin_frame();
  }

  void op(uint8_t byte) { add(std::string_view(reinterpret_cast<const char*>(&byte), 1)); }
  void memoize() {
    op(kMemoize);
    ++memo_size_;
  }
  // CPython does so before every value.
  void value() {
    if (frame_bytes_ >= kFrameTarget) {
      end_frame();
      begin_frame();
    }
  }
  void simple(uint8_t opcode) {
    value();
    op(opcode);
  }
  // A text or the name of a global: the second time, what the memo has.
  void text(std::string_view text) {
    if (got(text)) return;
    op(kShortBinUnicode);
    op(static_cast<uint8_t>(text.size()));
    add(text);
    remember(text);
  }
  void global(std::string_view module, std::string_view name) {
    const std::string both = std::string(module) + "." + std::string(name);
    if (got(both)) return;
    text(module);
    text(name);
    op(kStackGlobal);
    remember(both);
  }
  // The bytes object b"b", which CPython has once.
  void letter_b() {
    if (got("b'b'")) return;
    op(kShortBinBytes);
    add(std::string_view("\1b"));
    remember("b'b'");
  }
  void number(int64_t number) {
    value();
    const int bytes = number >= 0 && number <= 0xff ? 1 : number >= 0 && number <= 0xffff ? 2 : 4;
    op(bytes == 1 ? kBinInt1 : bytes == 2 ? kBinInt2 : kBinInt);
    little_endian(static_cast<uint64_t>(number), bytes);
  }
  // A bytes object whose content stands between two texts. Sets where in the file that is.
  void elements(StoredArray& array) {
    value();
    const bool large = array.bytes >= kFrameTarget;
    if (large) end_frame();
    const int length_bytes = array.bytes <= 0xff ? 1 : array.bytes <= 0xffffffff ? 4 : 8;
    op(length_bytes == 1 ? kShortBinBytes : length_bytes == 4 ? kBinBytes : kBinBytes8);
    little_endian(static_cast<uint64_t>(array.bytes), length_bytes);
    array.begin = out_.bytes;
    out_.bytes += array.bytes;
    frame_bytes_ += array.bytes;
    out_.texts.emplace_back();
    if (large) begin_frame();
    memoize();
  }
  void end() {
    op(kStop);
    end_frame();
  }

 private:
  void add(std::string_view bytes) {
    out_.texts.back() += bytes;
    out_.bytes += static_cast<int64_t>(bytes.size());
    frame_bytes_ += static_cast<int64_t>(bytes.size());
  }
  void little_endian(uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) op(static_cast<uint8_t>(number >> (8 * i)));
  }
  bool got(std::string_view key) {
    value();
    const auto found = memo_.find(key);
    if (found == memo_.end()) return false;
    op(kBinGet);
    op(static_cast<uint8_t>(found->second));
    return true;
  }
  void remember(std::string_view key) {
    memo_.emplace(key, memo_size_);
    memoize();
  }

  void begin_frame() {
    op(kFrame);
    little_endian(0, 8);
    frame_text_ = out_.texts.size() - 1;
    frame_at_ = out_.texts.back().size();
    frame_bytes_ = 0;
  }
  void end_frame() {
    std::string& text = out_.texts[frame_text_];
    if (frame_bytes_ < kFrameMinimum) {
      text.erase(frame_at_ - kFrameHeader, kFrameHeader);
      out_.bytes -= kFrameHeader;
      return;
    }
    for (size_t i = 0; i < 8; ++i)
      text[frame_at_ - 8 + i] = static_cast<char>(static_cast<uint64_t>(frame_bytes_) >> (8 * i));
  }

  PickleTexts& out_;
  std::map<std::string, int, std::less<>> memo_;
  int memo_size_ = 0;
  size_t frame_text_ = 0, frame_at_ = 0;
  int64_t frame_bytes_ = 0;
};

void write_dtype(Pickler& out, Dtype dtype) {
  out.value();
  out.global("numpy", "dtype");
  if (dtype == Dtype::kBf16) {
    out.global("ml_dtypes", "bfloat16");
  } else {
    out.text(dtype == Dtype::kF32 ? "f4" : "i1");
  }
  out.simple(kNewFalse);
  out.simple(kNewTrue);
  out.op(kTuple3);
  out.memoize();
  out.op(kReduce);
  out.memoize();
  out.value();
  out.op(kMark);
  out.number(3);
  out.text(dtype == Dtype::kInt8 ? "|" : "<");
  for (int i = 0; i < 3; ++i) out.simple(kNone);
  const int64_t size = dtype == Dtype::kBf16 ? 2 : -1;
  out.number(size);
  out.number(size);
  out.number(dtype == Dtype::kBf16 ? 64 : 0);  // NumPy's flag NPY_USE_SETITEM, which bfloat16 has
  out.op(kTuple);
  out.memoize();
  out.op(kBuild);
}

void write_shape(Pickler& out, const io::Extents& shape) {
  out.value();
  if (shape.empty()) return out.op(kEmptyTuple);
  if (shape.size() > 3) out.op(kMark);
  for (const int64_t extent : shape) out.number(extent);
  static constexpr uint8_t kTuples[] = {kTuple1, kTuple2, kTuple3};
  out.op(shape.size() > 3 ? static_cast<uint8_t>(kTuple) : kTuples[shape.size() - 1]);
  out.memoize();
}

void write_array(Pickler& out, StoredArray& array) {
  const std::optional<int64_t> bytes = bytes_needed(array.dtype, array.shape);
  OSTRO_CHECK(bytes.has_value(), "an array of {} dimensions is too large", array.shape.size());
  array.bytes = *bytes;
  out.value();
  out.global("numpy.core.multiarray", "_reconstruct");
  out.value();
  out.global("numpy", "ndarray");
  out.value();
  out.number(0);
  out.op(kTuple1);
  out.memoize();
  out.letter_b();
  out.op(kTuple3);
  out.memoize();
  out.op(kReduce);
  out.memoize();
  out.value();
  out.op(kMark);
  out.number(1);
  write_shape(out, array.shape);
  write_dtype(out, array.dtype);
  out.simple(kNewFalse);
  out.elements(array);
  out.op(kTuple);
  out.memoize();
  out.op(kBuild);
}

}  // namespace

PickleTexts write_pickle(StoredTensor& tensor) {
  PickleTexts texts;
  Pickler out(texts);
  if (!tensor.scales) {
    write_array(out, tensor.weight);
  } else {
    out.global("__main__", "QuantizedWeight8bit");
    out.simple(kEmptyTuple);
    out.op(kNewObj);
    out.memoize();
    out.simple(kEmptyDict);
    out.memoize();
    out.op(kMark);
    out.text("weight");
    write_array(out, tensor.weight);
    out.text("scales");
    write_array(out, *tensor.scales);
    out.op(kSetItems);
    out.op(kBuild);
  }
  out.end();
  return texts;
}

}  // namespace ostro::grok
