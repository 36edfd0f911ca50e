// Nests of serial sums (N5). A short sum is computed by one thread. Of long ones a block has a few: most of
// its threads compute elements of all of them side by side into shared memory, and one thread a sum adds them
// in their order, a piece behind.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/nest_writer.h"

namespace ostro::cuda {

using compile::memory_type;
using compile::Nest;
using compile::NestKind;
using compile::register_type;

namespace {

int64_t summed_count(const Nest& nest) {
  int64_t n = 1;
  for (const int64_t size : nest.summed) n *= size;
  return n;
}

// Whether neighbouring threads should take neighbouring elements of a sum, not of neighbouring sums: by the
// bytes that lie together in memory.
bool lies_along_sums(const Nest& nest) {
  int64_t along = 0, across = 0;
  for (size_t k = 0; k < nest.accesses.size(); ++k) {
    if (nest.accesses[k].store) continue;
    const int64_t bytes = ir::dtype_size(nest.accesses[k].dtype);
    if (std::abs(nest.summed_stride(k, nest.summed.size() - 1)) == 1) along += bytes;
    if (std::abs(nest.inner_stride(k)) == 1) across += bytes;
  }
  return along >= across;
}

}  // namespace

bool is_staged(const Nest& nest, bool fast) {
  return fast && nest.kind == NestKind::kSerial && !nest.summed.empty() &&
         nest.row_size() < (int64_t{1} << 30) && summed_count(nest) >= kFewestStaged;
}

// The pointers s stand still; inside the loops over the sum those called q move on.
std::string NestWriter::summed_pointers() const {
  std::string text;
  for (size_t k = 0; k < nest_.accesses.size(); ++k) {
    if (nest_.accesses[k].store) continue;
    std::string q = fmt::format("s{}", k);
    for (size_t i = 0; i < nest_.summed.size(); ++i)
      if (const int64_t stride = nest_.summed_stride(k, i); stride != 0)
        q += fmt::format(" + {}", times(fmt::format("r{}", i), stride));
    text += fmt::format("    const {}* const q{} = {};\n", memory_type(nest_.accesses[k].dtype), k, q);
  }
  return text;
}

std::string NestWriter::serial() {
  const auto sum = static_cast<int32_t>(nest_.ops.size()) - 1;
  const int64_t n = nest_.row_size();
  std::string text;
  for (const int32_t i : nest_.passes[0].ops) compute(i, text);
  const char* type = register_type(op(sum).dtype);
  const std::string element = operand(op(sum).operands[0], text);
  text += fmt::format("    acc = acc + ({}){};\n", type, element);
  std::string body = fmt::format(
      "  const i64 t = global_thread();\n  if (t >= a.extent * {0}ll) return;\n  const i64 row = t / {0}ll, "
      "j = t % {0}ll;\n  (void)row;\n  (void)j;\n",
      n);
  body += pointers('s') + fmt::format("    {} acc = 0;\n", type);
  const std::vector<int64_t>& loops = nest_.summed;
  for (size_t i = 0; i < loops.size(); ++i)
    body += fmt::format("    for (i64 r{0} = 0; r{0} < {1}; ++r{0})\n", i, loops[i]);
  body += "    {\n" + summed_pointers();
  const auto out = static_cast<size_t>(op(sum).store);
  const int64_t stride = nest_.inner_stride(out);
  return body + text +
         fmt::format("    }}\n    s{}[{}] = acc;\n", out, stride == 0 ? "0" : times("j", stride));
}

std::string NestWriter::staged() {
  const auto sum = static_cast<int32_t>(nest_.ops.size()) - 1;
  const auto out = static_cast<size_t>(op(sum).store);
  const int64_t n = nest_.row_size(), count = summed_count(nest_), stride = nest_.inner_stride(out);
  const int64_t pieces = (count + kStagedPiece - 1) / kStagedPiece,
                last = count - (pieces - 1) * kStagedPiece;
  const int each = kStagedOutputs * kStagedPiece / kStagedMakers, line = kStagedPiece + 4;
  const char* type = register_type(op(sum).dtype);
  std::string element_text;
  for (const int32_t i : nest_.passes[0].ops) compute(i, element_text);
  const std::string element = operand(op(sum).operands[0], element_text);
  // Sum `o` of the block, as row and j.
  const std::string place = fmt::format(
      "    const u32 place = j0 + (u32)o;\n    const i64 row = row0 + place / {0}u;\n    const u32 j = place "
      "% {0}u;\n    (void)row;\n    (void)j;\n",
      n);
  std::string indices;
  for (size_t i = nest_.summed.size(); i-- > 0;)
    indices += i == 0 ? "    const i64 r0 = r;\n"
                      : fmt::format("    const i64 r{0} = r % {1};\n    r /= {1};\n", i, nest_.summed[i]);
  const bool along = lies_along_sums(nest_);
  return fmt::format(
      R"__C__(  SHARED({type}, staged, {both});
  const i64 first = BLOCK_X * {outputs}, row0 = first / {n}ll, behind = a.extent * {n}ll - first;
  const u32 j0 = (u32)(first % {n}ll);
  const int sums = behind < {outputs} ? (int)behind : {outputs};
  {type} acc = 0;
  for (int piece = 0; piece <= {pieces}; ++piece) {{
  if (THREAD >= 32 && piece < {pieces}) {{
    {type} made[{each}];
#pragma unroll
    for (int e = 0; e < {each}; ++e) {{
    const int o_here = {o}, k = {k}, o = o_here < sums ? o_here : sums - 1;
    {r_type} r = ({r_type})piece * {size} + k;
    r = r < {count} ? r : {count} - 1;
{place}{pointers}{indices}{moved}{text}    made[e] = ({type}){element};
    }}
#pragma unroll
    for (int e = 0; e < {each}; ++e) staged[piece % 2 * {half} + ({o}) * {line} + {k}] = made[e];
  }} else if (THREAD < sums && piece > 0) {{
    const {type}* const x = staged + (piece - 1) % 2 * {half} + THREAD * {line};
    if (piece < {full}) {{
#pragma unroll 16
      for (int i = 0; i < {size}; ++i) acc = acc + x[i];
    }} else {{
#pragma unroll 16
      for (int i = 0; i < {last}; ++i) acc = acc + x[i];
    }}
  }}
  BARRIER();
  }}
  if (THREAD >= sums) return;
  const int o = THREAD;
{place}{pointers}    s{out}[{to}] = acc;
)__C__",
      fmt::arg("type", type), fmt::arg("both", 2 * kStagedOutputs * line),
      fmt::arg("half", kStagedOutputs * line), fmt::arg("line", line), fmt::arg("outputs", kStagedOutputs),
      fmt::arg("n", n), fmt::arg("pieces", pieces),
      fmt::arg("full", last == kStagedPiece ? pieces + 1 : pieces), fmt::arg("last", last),
      fmt::arg("size", kStagedPiece), fmt::arg("count", count), fmt::arg("each", each),
      fmt::arg("r_type", count < (int64_t{1} << 30) ? "int" : "i64"),
      fmt::arg("o", along ? "e" : fmt::format("(THREAD - 32) % {}", kStagedOutputs)),
      fmt::arg("k", along ? "(THREAD - 32)"
                          : fmt::format("((THREAD - 32) / {} + e * {})", kStagedOutputs,
                                        kStagedMakers / kStagedOutputs)),
      fmt::arg("place", place), fmt::arg("pointers", pointers('s')), fmt::arg("indices", indices),
      fmt::arg("moved", summed_pointers()), fmt::arg("text", element_text), fmt::arg("element", element),
      fmt::arg("out", out), fmt::arg("to", stride == 0 ? "0" : times("j", stride)));
}

}  // namespace ostro::cuda
