// The forms of a LeafAudit.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/audit/sampled.h"
#include "ostro/base/units.h"
#include "ostro/chain/canonical.h"
#include "ostro/leaf_audit/leaf_audit.h"

namespace ostro::leaf_audit {
std::string leaf_price_text(const LeafPrice& p) {
  std::string out = fmt::format(
      "leaf {} of {} of step {}: {:.4g} GFLOP, {:.1f} MiB of parameters and at most {:.1f} MiB "
      "for all else\n",
      p.leaf, p.leaves, p.step, p.flops * 1e-9, mib(p.parameter_bytes), mib(p.working_bytes));
  if (p.trained_seconds > 0)
    out += fmt::format("a leaf took {:.3g} s to train (run.json)\n", p.trained_seconds);
  if (p.replayed > 0)
    out += fmt::format(
        "before it {} whole step{} of {} leaves {} replayed: {:.4g} GFLOP{}\n", p.replayed,
        p.replayed == 1 ? "" : "s", p.leaves_before, p.replayed == 1 ? "is" : "are", p.flops_before * 1e-9,
        p.trained_seconds > 0 ? fmt::format("; they took {:.3g} s to train",
                                            p.trained_seconds * static_cast<double>(p.leaves_before))
                              : "");
  return out;
}

std::string leaf_text(const LeafAudit& a) {
  const LeafPrice& p = a.price;
  std::string out;
  if (a.findings.empty())
    out = fmt::format(
        "equal: leaf {} of {} of step {} replayed, and proven against the chain's root: loss {}{}\n", p.leaf,
        p.leaves, p.step, a.replayed->loss,
        a.replayed->gradient ? ", gradient " + *a.replayed->gradient : "");
  for (const audit::Finding& finding : a.findings) out += audit::finding_text(finding) + "\n";
  if (!a.replayed) return out;
  out += fmt::format("cost: {}\n", audit::cost_text(a.spent));
  if (!a.findings.empty()) return out;
  out += fmt::format(
      "shown: loss{} of this leaf follow from the parameters after step {}, which the chain "
      "vouches for, the programs and these sequences\n",
      a.replayed->gradient ? " and gradients" : "", p.step - 1);
  out += a.proven_rows
             ? "shown: the sequences are the step's, and their rows are training rows of the run's data, of "
               "the components whose places they have (the proof's paths lead to the genesis's roots)\n"
               "not shown: that the order of the data puts these rows into this step; that needs the token "
               "store\n"
             : "shown: the sequences are those that the order of the data puts into this step\n";
  return out +
         fmt::format("not shown: the other {} {} of the step, and what the step made of all gradients\n",
                     p.leaves - 1, p.leaves == 2 ? "leaf" : "leaves");
}

std::string leaf_json(const LeafAudit& a) {
  const LeafPrice& p = a.price;
  nlohmann::ordered_json j;
  // A price alone has no verdict.
  if (a.replayed || !a.findings.empty()) j["verdict"] = audit::verdict_word(a.verdict());
  j["findings"] = audit::finding_list_json(a.findings);
  j["step"] = p.step;
  j["leaf"] = p.leaf;
  j["leaves"] = p.leaves;
  j["steps_before"] = p.replayed;
  j["parameter_bytes"] = p.parameter_bytes;
  j["working_bytes"] = p.working_bytes;
  j["flops"] = p.flops;
  j["flops_before"] = p.flops_before;
  j["leaves_before"] = p.leaves_before;
  if (p.trained_seconds > 0) j["trained_seconds_of_leaf"] = p.trained_seconds;
  if (a.replayed) {
    j["loss"] = chain::hex_float(a.replayed->loss);
    if (a.replayed->gradient) j["gradient"] = *a.replayed->gradient;
    j["proven_rows"] = a.proven_rows;
    j["cpu_seconds"] = a.spent.cpu;
    j["seconds"] = a.spent.time;
  }
  return audit::json_line(j);
}

}  // namespace ostro::leaf_audit
