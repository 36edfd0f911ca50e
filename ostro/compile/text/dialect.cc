#include "ostro/compile/text/dialect.h"

namespace ostro::compile {
namespace {

constexpr Dialect kDialects[] = {
    {
        .name = "gnu",
        .language = "-std=gnu11",
        .head = "",
        .loops = R"__C__(#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety) interleave(assume_safety)")
#define EACH_OF_FEW EACH
#else
#define EACH _Pragma("GCC ivdep")
/* Where the loop is within one over rows, gcc would write all its turns out and vectorise over rows: minutes. */
#define EACH_OF_FEW EACH _Pragma("GCC unroll 1")
#endif
)__C__",
        .function = "static inline __attribute__((always_inline))",
        .kernel = "void",
        .bits = R"__C__(FN u32 bits32(float x) { u32 b; __builtin_memcpy(&b, &x, 4); return b; }
FN float f32_of(u32 b) { float x; __builtin_memcpy(&x, &b, 4); return x; }
FN u64 bits64(double x) { u64 b; __builtin_memcpy(&b, &x, 8); return b; }
FN double f64_of(u64 b) { double x; __builtin_memcpy(&x, &b, 8); return x; }
)__C__",
        .literals =
            R"__C__(/* Constants the compiler must not fold with: it computes without flush-to-zero. */
FN float lit32(u32 b) { float x = f32_of(b); __asm__("" : "+x"(x)); return x; }
FN double lit64(u64 b) { double x = f64_of(b); __asm__("" : "+x"(x)); return x; }
)__C__",
        .fma32 = "__builtin_fmaf",
        .fma64 = "__builtin_fma",
        .sqrt32 = "__builtin_sqrtf",
        .sqrt64 = "__builtin_sqrt",
        .floor32 = "__builtin_floorf",
        .infinity = "__builtin_inf()",
        .nan = "__builtin_nan(\"\")",
    },
    {
        .name = "plain",
        .language = "-std=c11 -pedantic-errors",
        .head = "#include <math.h>\n#include <string.h>\n",
        .loops = "#define EACH\n#define EACH_OF_FEW\n",
        .function = "static inline",
        .kernel = "void",
        .bits = R"__C__(FN u32 bits32(float x) { u32 b; memcpy(&b, &x, 4); return b; }
FN float f32_of(u32 b) { float x; memcpy(&x, &b, 4); return x; }
FN u64 bits64(double x) { u64 b; memcpy(&b, &x, 8); return b; }
FN double f64_of(u64 b) { double x; memcpy(&x, &b, 8); return x; }
)__C__",
        .literals = R"__C__(FN float lit32(u32 b) { volatile u32 hidden = b; return f32_of(hidden); }
FN double lit64(u64 b) { volatile u64 hidden = b; return f64_of(hidden); }
)__C__",
        .fma32 = "fmaf",
        .fma64 = "fma",
        .sqrt32 = "sqrtf",
        .sqrt64 = "sqrt",
        .floor32 = "floorf",
        .infinity = "HUGE_VAL",
        .nan = "(double)NAN",
    },
};

}  // namespace

const Dialect& gnu_dialect() { return kDialects[0]; }
const Dialect& plain_dialect() { return kDialects[1]; }

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect& dialect : kDialects)
    if (dialect.name == name) return &dialect;
  return nullptr;
}

}  // namespace ostro::compile
