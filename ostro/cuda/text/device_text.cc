#include "ostro/cuda/text/device_text.h"

#include "ostro/base/check.h"
#include "ostro/compile/text/prelude.h"

namespace ostro::cuda {
namespace {

std::string_view embedded(std::string_view name) {
  for (const DeviceFile& file : device_files())
    if (file.name == name) return file.text;
  OSTRO_CHECK(false, "no device text is called {}", name);
  return {};
}

}  // namespace

const compile::Dialect& cuda_dialect() {
  static const compile::Dialect dialect = {
      .name = "cuda",
      .language = "-std=c++17",
      .head = embedded("text/head.cu"),
      .loops = "",
      .function = "DEVICE",
      .kernel = "KERNEL",
      .bits = R"__C__(FN u32 bits32(float x) { return FLOAT_BITS(x); }
FN float f32_of(u32 b) { return BITS_FLOAT(b); }
FN u64 bits64(double x) { return DOUBLE_BITS(x); }
FN double f64_of(u64 b) { return BITS_DOUBLE(b); }
)__C__",
      .literals = R"__C__(/* Constants the compiler must not fold with: it computes without flush-to-zero. */
FN float lit32(u32 b) { float x = f32_of(b); HIDE32(x); return x; }
FN double lit64(u64 b) { double x = f64_of(b); HIDE64(x); return x; }
)__C__",
      .fma32 = "FMA32",
      .fma64 = "FMA64",
      .sqrt32 = "SQRT32",
      .sqrt64 = "SQRT64",
      .floor32 = "FLOOR32",
      .infinity = "(f64_of(0x7ff0000000000000u))",
      .nan = "(f64_of(0x7ff8000000000000u))",
  };
  return dialect;
}

std::string device_text(std::string_view kernels) {
  static const std::string common =
      compile::prelude_text(cuda_dialect()) + std::string(embedded("text/arguments.h")) +
      std::string(embedded("text/block.cu")) + std::string(embedded("text/draws.cu"));
  return common + std::string(kernels);
}

std::string device_file_text(std::string_view name) {
  constexpr std::string_view kInclude = "#include \"";
  std::string kernels;
  std::string_view rest = embedded(name);
  while (rest.starts_with(kInclude)) {
    rest.remove_prefix(kInclude.size());
    const size_t end = rest.find("\"\n");
    kernels += embedded(rest.substr(0, end));
    rest.remove_prefix(end + 2);
  }
  kernels += rest;
  return device_text(kernels);
}

}  // namespace ostro::cuda
