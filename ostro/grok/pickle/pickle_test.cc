// What is written is read; what differs from it in any way is refused, with its place.
#include <doctest/doctest.h>

#include "ostro/grok/pickle/pickle_for_test.h"

namespace ostro::grok {
namespace {

using std::string_literals::operator""s;

std::string message(const std::string& bytes) {
  const auto read = read_pickle(BytesFile(bytes));
  return read.ok() ? "read: " + describe(*read) : read.error().message();
}

// A file with one place of it replaced; the frames' lengths follow.
class Edited {
 public:
  explicit Edited(StoredTensor tensor) : bytes_(pickle_of(tensor, 'x')) {}
  Edited& replace(const std::string& from, const std::string& to) {
    const size_t at = bytes_.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    bytes_.replace(at, from.size(), to);
    const auto length = static_cast<uint64_t>(bytes_.size() - 11);
    for (size_t i = 0; i < 8; ++i) bytes_[3 + i] = static_cast<char>(length >> (8 * i));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::string message() const { return grok::message(bytes_); }

 private:
  std::string bytes_;
};

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("files have the sizes of the release's") {
  const std::pair<StoredTensor, int64_t> cases[] = {
      {array_of(Dtype::kF32, {131072, 6144}), 3'221'225'637},
      {array_of(Dtype::kF32, {6144}), 24'727},
      {array_of(Dtype::kF32, {6144, 8}), 196'770},
      {quantized_of({6144, 1024}, {1, 1024}), 6'293'814},
      {quantized_of({6144, 6144}, {1, 6144}), 37'761'334},
      {quantized_of({6144, 6144}, {8, 6144}), 37'847'359},
      {quantized_of({8, 6144, 32768}, {8, 1, 32768}), 1'611'137'347},
      {quantized_of({8, 32768, 6144}, {8, 8, 6144}), 1'611'399'491}};
  for (auto [tensor, bytes] : cases) CHECK(write_pickle(tensor).bytes == bytes);
}

TEST_CASE("what is written is read, and only the pickle is") {
  const StoredTensor cases[] = {array_of(Dtype::kF32, {4}),
                                array_of(Dtype::kF32, {6144}),
                                array_of(Dtype::kF32, {300, 70000}),
                                array_of(Dtype::kBf16, {2, 3, 4, 5}),
                                array_of(Dtype::kF32, {}),
                                array_of(Dtype::kF32, {0, 3}),
                                quantized_of({16, 8}, {1, 8}),
                                quantized_of({8, 128, 688}, {8, 1, 688}),
                                quantized_of({8, 688, 1280}, {8, 8, 1280}),
                                quantized_of({255, 257}, {1, 257}),
                                quantized_of({8, 40000}, {1, 40000})};
  for (StoredTensor tensor : cases) {
    CAPTURE(describe(tensor));
    const BytesFile file(pickle_of(tensor, 'x'));
    CHECK(file.size() == write_pickle(tensor).bytes);
    const auto read = read_pickle(file);
    REQUIRE_MESSAGE(read.ok(), read.error().message());
    CHECK(*read == tensor);
    CHECK(file.bytes_read() <= 2048);
  }
}

TEST_CASE("a file that is cut at any byte is refused") {
  for (StoredTensor tensor : {array_of(Dtype::kF32, {5}), quantized_of({4, 4}, {1, 4})}) {
    const std::string bytes = pickle_of(tensor);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto read = read_pickle(BytesFile(bytes.substr(0, size)));
      REQUIRE_MESSAGE(!read.ok(), size);
      CHECK(read.error().code() == ErrorCode::kCorrupt);
      CHECK(read.error().message().starts_with("dir/tensor00000_000: byte "));
    }
  }
  CHECK(message("") == "dir/tensor00000_000: byte 0: the file ends: 0 bytes are left, 1 are needed");
  CHECK(message("\x80\x04\x95\x10\0\0\0"s) ==
        "dir/tensor00000_000: byte 2: opcode 0x95 (FRAME): the file ends: 4 bytes are left, 8 are needed");
}

TEST_CASE("every byte that is changed is refused, or changes only what it says") {
  for (const StoredTensor& original : {array_of(Dtype::kF32, {5}), quantized_of({4, 4}, {1, 4})}) {
    StoredTensor tensor = original;
    const std::string bytes = pickle_of(tensor, 'x');
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(value);
        const auto read = read_pickle(BytesFile(changed));
        if (read.ok()) CHECK(read->weight.begin + read->weight.bytes <= static_cast<int64_t>(bytes.size()));
      }
    }
  }
}

TEST_CASE("other opcodes, protocols and names are refused") {
  int refused = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const std::string text = message("\x80\x04"s + static_cast<char>(opcode) + std::string(40, '\0'));
    CHECK(text.find("read: ") == std::string::npos);
    if (text.find("byte 2: ") != std::string::npos && text.find("not an opcode") != std::string::npos)
      ++refused;
  }
  CHECK(refused == 256 - 28);  // PROTO, the 29th, comes only first
  CHECK(has(message("cos\nsystem\n(S'rm -rf /'\ntR."), "does not begin with PROTO"));
  CHECK(has(message("\x80\x04"
                    "cos\nsystem\n(S'x'\ntR."),
            "byte 2: opcode 0x63 (GLOBAL): not an opcode that Grok-1's files use; nothing was executed"));
  CHECK(has(message("\x80\x02X"), "byte 0: opcode 0x80 (PROTO): a pickle of protocol 2; Grok-1's are of 4"));
  CHECK(has(message("\x80\x05X"), "protocol 5"));
  CHECK(has(message(std::string(100, '\0')), "begins with zeros, so a download has not written it yet"));
  const std::string system = "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.";
  CHECK(has(message(system), "byte 14: opcode 0x93 (STACK_GLOBAL): the name \"system\" of module \"os\""));
  const std::string known[] = {
      "\x8c\x05numpy\x8c\x05"
      "dtype\x93",
      "\x8c\x09ml_dtypes\x8c\x08"
      "bfloat16\x93"};
  CHECK(has(message("\x80\x04" + known[1] + ")R."),
            "only _reconstruct and numpy.dtype may be called, not a name"));
  CHECK(has(message("\x80\x04" + known[0] + ")\x81."), "only QuantizedWeight8bit may be made"));
  CHECK(has(message("\x80\x04" + known[0] +
                    "\x8c\x08"
                    "bfloat16\x89\x88\x87R."),
            "its code is \"bfloat16\""));
  CHECK(has(message("\x80\x04" + known[0] + "."), "the file holds a name, not an array"));
  CHECK(has(message("\x80\x04" + known[0] + "}b."), "a name has no state"));
  CHECK(has(message("\x80\x04K\1K\2\x93."), "module and name are an int and an int"));
  CHECK(has(message("\x80\x04\x8c\x03\x1b[m\x8c\1y\x93."), "module \"\\x1b[m\""));
}

TEST_CASE("arrays of other kinds are refused") {
  const StoredTensor f32 = array_of(Dtype::kF32, {5, 300}), int8 = quantized_of({4, 4}, {1, 4});
  const std::string shape = "K\5M\x2c\1\x86";
  CHECK(has(Edited(f32).replace("K\1" + shape, "K\2" + shape).message(), "not a tuple of 5 of version 1"));
  CHECK(has(Edited(f32).replace(shape, "J\xff\xff\xff\xffM\x2c\1\x86").message(),
            "extent 0 of its shape is -1"));
  CHECK(has(Edited(f32).replace(shape, "K\6M\x2c\1\x86").message(),
            "f32 [6, 300] needs 7200 bytes, the file holds 6000"));
  const std::string huge = "J\xff\xff\xff\x7f";
  CHECK(has(Edited(f32).replace(shape, huge + huge + huge + "\x87").message(), "needs more than 2^63 bytes"));
  CHECK(has(Edited(f32).replace("<", ">").message(), "its byte order is \">\"; only little-endian"));
  CHECK(has(Edited(f32).replace("f4", "f8").message(), "its code is \"f8\"; known are"));
  CHECK(has(Edited(f32)
                .replace("\x89"
                         "B",
                         "\x88"
                         "B")
                .message(),
            "Fortran's order"));
  CHECK(has(Edited(f32).replace("NNN", "NNK\1").message(), "fields, sizes or flags of another dtype"));
  CHECK(
      has(Edited(int8).replace("\x8c\6weight", "\x8c\6scales").message(), "not a dict of weight and scales"));
  CHECK(has(Edited(int8).replace("ub.", "u\x94NNub.").message(), "there is no mark"));
  CHECK(has(Edited(int8).replace("ub.", "u(\x8c\1xK\1ub.").message(), "not a dict of weight and scales"));
  CHECK(has(Edited(int8).replace("ub.", "u(\x8c\1xub.").message(), "a key has no value"));
  CHECK(has(Edited(int8)
                .replace("ub.",
                         "uh\x04"
                         "b.")
                .message(),
            "a dict has no state"));
}

TEST_CASE("stack, marks, memo and frames keep their bounds") {
  CHECK(has(message("\x80\x04h\0."s), "byte 2: opcode 0x68 (BINGET): entry 0 of the memo, which has 0"));
  CHECK(has(message("\x80\x04j\xff\xff\xff\xff."s), "entry 4294967295 of the memo"));
  CHECK(has(message("\x80\x04\x94."), "opcode 0x94 (MEMOIZE): the stack has too few values"));
  CHECK(has(message("\x80\x04K\1\x86."), "the stack has too few values"));
  CHECK(has(message("\x80\x04K\1(\x85."), "the stack has too few values"));
  CHECK(has(message("\x80\x04" + std::string(100, '(')), "more than 8 marks"));
  CHECK(has(message("\x80\x04" + std::string(100, 'N')), "more than 64 values on the stack"));
  CHECK(has(message("\x80\x04N" + std::string(600, '\x85')), "more than 512 values"));
  CHECK(has(message("\x80\x04N" + std::string(3000, '\x94')), "more than 2048 opcodes"));
  CHECK(has(message("\x80\x04(" + std::string(40, 'N') + "t"), "40 items; at most 32"));
  CHECK(has(message("\x80\x04"
                    "B\xff\xff\xff\xff"s),
            "4294967295 are needed"));
  CHECK(has(message("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff"s), "18446744073709551615 are needed"));
  CHECK(has(message("\x80\x04X\0\0\0\x7f"s), "a text of 2130706432 bytes"));
  CHECK(has(message("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff"s), "opcode 0x95 (FRAME)"));
  CHECK(has(message("\x80\x04\x95\4\0\0\0\0\0\0\0NNK"s), "the file ends"));
  CHECK(has(message("\x80\x04\x95\3\0\0\0\0\0\0\0NM\1\1."s), "the frame ends at byte 14"));
  CHECK(has(message("\x80\x04\x95\x14\0\0\0\0\0\0\0N\x95\1\0\0\0\0\0\0\0NNNNNNNNNNN"s),
            "a frame begins inside the frame"));
  // A dict that holds itself, and a tuple of it, are values like others; they are just no arrays.
  CHECK(has(message("\x80\x04}\x94(\x8c\1xh\0u\x94."s), "the file holds a dict, not an array"));
  CHECK(has(message("\x80\x04)."), "the file holds a tuple"));
  CHECK(has(message("\x80\x04NN."), "2 values and 0 marks are left"));
  StoredTensor tensor = array_of(Dtype::kF32, {3});
  CHECK(has(message(pickle_of(tensor) + "x"), "1 bytes follow the pickle's end"));
}

}  // namespace ostro::grok
