// OptionTable: options, declared once. A struct of options has a function like this:
//
//   void visit_options(OptionTable& t) {
//     t.add(&seed, "seed", Effect::kBits, "", "seed of every random number");
//     t.section(&checkpointer, "checkpointer", "when to save");
//   }
//
// Everything else is made from this declaration: the YAML reader, dotted overrides (--a.b.c VALUE), the
// resolved file, the canonical config, --help and docs/reference/config.md. codec.h lists the types that a
// field may have.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/node.h"

namespace ostro::config {

// The kind of result that an option changes. The canonical config (genesis entry of chain.jsonl) holds
// options of the first two kinds.
enum class Effect {
  kBits,      // the numbers of the run
  kSchedule,  // the records of the chain and their steps
  kPlan,      // how the same numbers are computed
  kOutput,    // other files, logs and evaluations
};

// "bits", "schedule", "plan", "output".
const char* effect_name(Effect effect);

// A declared option as a row of a list. Used for --help, docs/reference/config.md and tests over all options.
struct OptionInfo {
  // "model.rope.factor". Options inside list elements have paths like "trainer.tracker[]", options inside map
  // entries like "data.components.<name>".
  std::string path;
  std::string type;           // "integer", "number or null", ...
  std::string default_value;  // YAML flow text
  std::string other_value;    // another legal value, as YAML flow text; empty for options inside elements
  std::string unit;
  std::string help;
  Effect effect = Effect::kOutput;
  bool by_content = false;  // a path; in the canonical config it is represented by a hash of its content
  // the value at which the canonical config leaves the option out, as YAML flow text; may be empty
  std::string left_out_at;
  std::string fixed;  // the reason why a run cannot continue with another value; empty: it can
  // Settings under which the option exists, for example {"model.rope.type", "llama3"}.
  std::vector<std::pair<std::string, std::string>> selects;
  // Settings under which the option has an effect. Used by tests that change the option.
  std::vector<std::pair<std::string, std::string>> beside;
};

// In a path, kAnyName stands for the name of any map entry. is_inside_element() says whether a path is inside
// an element of a list or map.
inline constexpr const char* kAnyName = ".<name>";
bool is_inside_element(const std::string& path);

// The options to write: all, or those of the canonical config.
enum class Write { kAll, kCanonical };

// One declared option or section. It points to a field of a struct, which must outlive it.
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
  // Appends the options inside the field (sections, variants, list elements) to the list.
  std::function<void(const OptionInfo& self, std::vector<OptionInfo>&)> describe;

  // Gives another legal value, as YAML flow text, for tests that change every option. Booleans and numbers
  // need none: theirs is made by negating, adding one, or doubling.
  Option& other(std::string value);
  // Gives paths and values (YAML flow text) that tests set first, so that the other value is legal and has an
  // effect.
  Option& beside(std::vector<std::pair<std::string, std::string>> settings);
  // The option is a path. In the canonical config a hash of the content represents it.
  Option& by_content();
  // The canonical config leaves this option out as long as it has its default value (YAML flow text). For
  // options that were added later: the hashes of older runs must not change.
  Option& since_default(std::string default_value);
  // A run cannot continue with another value. For a map this includes everything inside it; for a section it
  // includes the type. `why` is half a sentence: "the shapes of the parameters follow from it".
  Option& fixed(std::string why);
};

// The options of one struct, in the order of declaration. The struct must outlive the table.
class OptionTable {
 public:
  // Declares an option. codec.h lists the types that T may be.
  template <class T>
  Option& add(T* field, std::string name, Effect effect, std::string unit, std::string help);
  // Declares a struct of options, or a variant of structs chosen by its `type:` key. The type has effect
  // bits.
  template <class T>
  Option& section(T* field, std::string name, std::string help);
  // Refuses a key that other sections of this kind have and this one does not. `reason` gives the reason and
  // the replacement. Keys of other trainers are listed in foreign_keys.h.
  void refuse(std::string name, std::string reason);

  // Reads a map to its end. Options that are absent keep their value. `path` is "" for the whole
  // configuration. Errors, all as one (mistakes.h): an unknown key (says what it is called here), a key given
  // twice, a refused key, a value of the wrong type. A key that has no effect here is logged.
  Status read(const Node& node, const std::string& path) const;
  Node write(Write which) const;
  // Appends every option below `self`. They inherit its path, its `selects` and, inside a list, its effect.
  void describe(const OptionInfo& self, std::vector<OptionInfo>& out) const;

 private:
  std::deque<Option> options_;  // a deque, because add() returns references that must stay valid
  std::vector<std::pair<std::string, std::string>> refused_;
};

// The path of a child, "a.b".
std::string join_path(const std::string& path, const std::string& name);

// How many letters must be put in, taken out or replaced to make one name the other.
size_t edit_distance(const std::string& a, const std::string& b);

// The candidate with the smallest edit distance to `name`. Empty if there are no candidates.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// An error if an earlier entry of the map has the key of `item`, which is one of its entries.
Status given_once(const Node& map, const Node& item, const std::string& path);

// "config.yaml:12: model.hidden_dim: expected an integer, got "abc"".
Error wrong_type(const Node& node, const std::string& path, const std::string& expected);

// An error about a value that has the right type but makes no sense: "model.num_heads: message".
Error option_error(const std::string& path, const std::string& message);

}  // namespace ostro::config

#include "ostro/config/codec.h"  // IWYU pragma: export
