// index_body, runs_body, ...: the pages of a lab as HTML, without what all pages have (shell.h). Functions of
// the facts alone; errors are those of asking the record.
#pragma once

#include <string>
#include <vector>

#include "ostro/board/board.h"
#include "ostro/site/batch_sets.h"
#include "ostro/site/lab_facts.h"

namespace ostro::site {

// The question with verdicts, the steps as a figure and as a table with reasons and cost.
Result<std::string> index_body(const LabFacts& facts);
// The runs beside each other, with the options in which they differ, and their losses.
Result<std::string> runs_body(const LabFacts& facts);
// A run: curves, phases, evaluations, configuration, sessions, lineage. `head` is the hash of its chain.
Result<std::string> run_body(const LabFacts& facts, const RunFacts& run);
// Two runs beside each other; site.js compares their chains.
Result<std::string> diff_body(const LabFacts& facts);
// Sources, stores, what was left out, and the batches of the runs.
Result<std::string> data_body(const LabFacts& facts, const std::vector<BatchSet>& sets);
// The batches that some runs have in common: mixture by step, a step's sequences, documents and their uses.
std::string batches_body(const LabFacts& facts, const BatchSet& set);

// The boards with their tracks and entries, the best first: what was replayed, and why entries were refused.
Result<std::string> boards_body(const LabFacts& facts, const std::vector<board::Board>& boards);

// The training losses of runs; `condition` is SQL on the table chain. Of many steps every k-th. Empty: none.
Result<std::string> loss_figure(const LabFacts& facts, const std::string& condition, int64_t most_points);
// Items of a list: the forks for which `condition`, SQL on the table forks, holds.
Result<std::string> forks_html(const LabFacts& facts, const std::string& condition);
// A heading and a table of a SELECT; empty without rows.
Result<std::string> section(const LabFacts& facts, const std::string& title, const std::string& sql);

}  // namespace ostro::site
