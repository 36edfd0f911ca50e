// Options declared once. A struct of options has
//
//   void visit_options(OptionTable& t) {
//     t.add(&seed, "seed", Effect::kBits, "", "seed of every random number");
//     t.section(&checkpointer, "checkpointer", "when to save");
//   }
//
// and from that declaration come the YAML reader, dotted overrides, the resolved file, the canonical
// config, --help and docs/config.md. codec.h lists the types a field may have.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/node.h"

namespace ostro::config {

// What a changed option changes. The canonical config (chain.jsonl, genesis) holds the first two.
enum class Effect {
  kBits,      // the numbers of the run
  kSchedule,  // what the chain records and at which steps
  kPlan,      // how the same numbers are computed
  kOutput,    // files, logs and evaluations beside the run
};

// "bits", "schedule", "plan", "output".
const char* effect_name(Effect effect);

// A declared option as a row of a list: for --help, docs/config.md and tests over all options.
struct OptionInfo {
  // "model.rope.factor"; elements of lists are "trainer.tracker[]", entries of maps "data.components.<name>".
  std::string path;
  std::string type;           // "integer", "number or null", ...
  std::string default_value;  // YAML flow text
  std::string other_value;    // another legal value: YAML flow text; empty for options inside elements
  std::string unit;
  std::string help;
  Effect effect = Effect::kOutput;
  bool by_content = false;  // a place whose content's hash stands for it in the canonical config
  std::string left_out_at;  // the value that the canonical config leaves out: YAML flow text; else empty
  std::string fixed;        // why a run that has begun cannot go on with another value; empty: it can
  // What to set first so that the option exists: {"model.rope.type", "llama3"}.
  std::vector<std::pair<std::string, std::string>> selects;
  // What to set first so that it matters, for tests that change the option.
  std::vector<std::pair<std::string, std::string>> beside;
};

// What stands in a path for the name of a map's entry, and whether a path is inside an element of a list or
// map.
inline constexpr const char* kAnyName = ".<name>";
bool is_inside_element(const std::string& path);

// Which options a written tree holds.
enum class Write { kAll, kCanonical };

// One declared option or section, bound to one field of one struct (by pointer: it must outlive this).
struct Option {
  std::string name;
  Effect effect = Effect::kOutput;
  std::string unit;
  std::string help;
  std::string other_value;
  bool content = false;
  std::string left_out_at;
  std::string fixed_because;
  std::vector<std::pair<std::string, std::string>> beside_values;
  bool is_section = false;

  std::string type;
  std::function<Status(const Node&, const std::string& path)> read;
  std::function<Node(Write)> write;
  // Appends the options inside the field's type (sections, variants, list elements).
  std::function<void(const OptionInfo& self, std::vector<OptionInfo>&)> describe;

  // Another legal value, for tests that change every option; YAML flow text. Booleans and numbers have a
  // derived one (negated, plus one, doubled), others need it.
  Option& other(std::string value);
  // What tests set first, so that the other value is legal and matters: paths and YAML flow texts.
  Option& beside(std::vector<std::pair<std::string, std::string>> settings);
  // The option names a place; the hash of what is there stands for it in the canonical config.
  Option& by_content();
  // The canonical config leaves the option out while it has this value (YAML flow text), its default: for
  // options that are younger than runs, whose hashes must stay.
  Option& since_default(std::string default_value);
  // A run that has begun cannot go on with another value (of a map, with anything else inside it; of a
  // section, with another type). Says why in half a sentence: "the shapes of the parameters follow from it".
  Option& fixed(std::string why);
};

// The options of one struct, in the order declared. Lives as long as the struct it is bound to.
class OptionTable {
 public:
  // Declares an option; codec.h says which types T may be.
  template <class T>
  Option& add(T* field, std::string name, Effect effect, std::string unit, std::string help);
  // Declares a struct of options, or a variant of structs chosen by its `type:` key (of effect bits).
  template <class T>
  Option& section(T* field, std::string name, std::string help);
  // A key that other trainers have and this one refuses, with the reason and what to use instead.
  void refuse(std::string name, std::string reason);

  // Reads a map; keys that are absent keep their value. `path` is "" for the whole configuration.
  // Errors: an unknown key (names the nearest), a refused key, a value of the wrong type.
  Status read(const Node& node, const std::string& path) const;
  Node write(Write which) const;
  // Appends every option below `self` (its path, selects and effect of a list are inherited).
  void describe(const OptionInfo& self, std::vector<OptionInfo>& out) const;

 private:
  std::deque<Option> options_;  // deque: add() hands out references
  std::vector<std::pair<std::string, std::string>> refused_;
};

// "a.b": path of a child.
std::string join_path(const std::string& path, const std::string& name);

// The candidate with the smallest edit distance; empty when there is none.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// "config.yaml:12: model.hidden_dim: expected an integer, got "abc"".
Error wrong_type(const Node& node, const std::string& path, const std::string& expected);

// Error of a value that was read but makes no sense: "model.num_heads: message".
Error option_error(const std::string& path, const std::string& message);

}  // namespace ostro::config

#include "ostro/config/codec.h"  // IWYU pragma: export
