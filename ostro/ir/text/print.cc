// Printing a Program (text.h).
#include <cstdio>

#include <fmt/format.h>

#include "ostro/base/sha256.h"
#include "ostro/ir/text/text.h"

namespace ostro::ir {
namespace {

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string hex_float(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%a", value);
  return buffer;
}

std::string print_attr(const Attr& attr) {
  struct Visitor {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return hex_float(v); }
    std::string operator()(const std::string& v) const { return quote(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<std::string>& v) const {
      std::string out = "<";
      for (size_t i = 0; i < v.size(); ++i) out += (i == 0 ? "" : ", ") + quote(v[i]);
      return out + ">";
    }
  };
  return std::visit(Visitor{}, attr);
}

// Numbers the values of each block in the order of their definition, so that equal programs with other ids
// have equal text.
class Printer {
 public:
  explicit Printer(bool canonical) : canonical_(canonical) {}

  void block(const Block& b, const std::string& indent, const std::vector<std::string>* names) {
    std::vector<int> number(b.values.size(), -1);
    int next = 0;
    out_ += '(';
    for (size_t i = 0; i < b.params.size(); ++i) {
      const auto v = static_cast<size_t>(b.params[i]);
      number[v] = next++;
      out_ += fmt::format("{}%{}: {}", i == 0 ? "" : ", ", number[v], b.values[v].str());
      if (!canonical_ && names != nullptr && !names->empty()) out_ += ' ' + quote((*names)[i]);
    }
    out_ += ") {\n";
    for (const Op& op : b.ops) {
      out_ += indent + "  ";
      for (size_t i = 0; i < op.results.size(); ++i) {
        number[static_cast<size_t>(op.results[i])] = next;
        out_ += fmt::format("{}%{}", i == 0 ? "" : ", ", next++);
      }
      out_ += fmt::format(" = {}(", op_name(op.kind));
      for (size_t i = 0; i < op.operands.size(); ++i)
        out_ += fmt::format("{}%{}", i == 0 ? "" : ", ", number[static_cast<size_t>(op.operands[i])]);
      out_ += ')';
      if (!op.attrs.all().empty()) {
        out_ += " {";
        bool first = true;
        for (const auto& [name, value] : op.attrs.all()) {
          out_ += fmt::format("{}{} = {}", first ? "" : ", ", name, print_attr(value));
          first = false;
        }
        out_ += '}';
      }
      out_ += " : ";
      for (size_t i = 0; i < op.results.size(); ++i)
        out_ += (i == 0 ? "" : ", ") + b.shape(op.results[i]).str();
      if (!canonical_ && !(op.scope.empty() && op.label.empty() && op.location.empty()))
        out_ += fmt::format(" @ {} {} {}", quote(op.scope), quote(op.label), quote(op.location));
      for (const Block& region : op.regions) {
        out_ += fmt::format("\n{}    region ", indent);
        block(region, indent + "    ", nullptr);
      }
      out_ += '\n';
    }
    out_ += indent + "  return";
    for (size_t i = 0; i < b.results.size(); ++i)
      out_ += fmt::format("{} %{}", i == 0 ? "" : ",", number[static_cast<size_t>(b.results[i])]);
    out_ += '\n' + indent + '}';
  }

  std::string program(const Program& p) {
    out_ = fmt::format("program {} leaves {{", quote(canonical_ ? "" : p.name));
    for (size_t i = 0; i < p.leaves.axes.size(); ++i)
      out_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", p.leaves.axes[i].first, p.leaves.axes[i].second);
    out_ += "}\n";
    block(p.body, "", &p.param_names);
    out_ += '\n';
    if (!canonical_ && !p.result_names.empty()) {
      out_ += "results";
      for (const auto& n : p.result_names) out_ += ' ' + quote(n);
      out_ += '\n';
    }
    return std::move(out_);
  }

 private:
  bool canonical_;
  std::string out_;
};

}  // namespace

std::string print(const Program& program, const PrintOptions& options) {
  return Printer(options.canonical).program(program);
}

std::string program_hash(const Program& program) { return sha256_hex(print(program, {.canonical = true})); }

}  // namespace ostro::ir
