// check_preprocessing, check_files and others: compare a store on disk with the one that a configuration
// describes.
//
// Each check returns no error when they agree; else kInvalidArgument says what differs, and in which store.
// Only the checks that take SourceHashes read files, and give errors of reading them, too.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"
#include "ostro/data/ledger/source_hashes.h"

namespace ostro::data {

// The type ("text", "prebuilt", ...) in Preprocessing::format. Empty if the format has none.
std::string row_type(const std::string& format);

// Compares only the preprocessing, which is enough for reading a store. `cache_dir` is for the error.
Status check_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                           const Preprocessing& wanted);

// The same for a finished store. If `any_beginning` (data.enforce_bos is null), one whose documents have no
// beginning token is good, too: it was made before Ostro put one there.
Status check_finished_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                                    Preprocessing wanted, bool any_beginning);

// True if the store lacks the beginning token that the configuration wants.
bool lacks_beginning(const Preprocessing& store, const Preprocessing& wanted);

// The same for a store that is used in place. Such a store decides itself what its rows were made from, which
// of them were left out and which are held out; only the kind of its rows must be the one that is wanted.
Status check_preprocessing_in_place(const std::string& cache_dir, const Preprocessing& store,
                                    Preprocessing wanted, bool any_beginning);

// Compares the files of a finished store with the present sources, by content. A file with the recorded path,
// size and time is taken as unchanged; one of the same size only is compared by its hash. A changed path
// alone is no difference, a changed order is. Returns the files that the store lacks: new files behind its
// own in data.train_urls, then in data.validation_urls. Any other difference is an error.
Result<std::vector<SourceFile>> new_files(SourceHashes& hashes, const std::string& cache_dir,
                                          const std::vector<FileLedger>& store,
                                          const std::vector<SourceFile>& sources);

// The same, and new files are an error, too.
Status check_files(SourceHashes& hashes, const std::string& cache_dir, const std::vector<FileLedger>& store,
                   const std::vector<SourceFile>& sources);

// Describes how the sources of an unfinished store differ from the present ones; empty when they have not
// changed.
std::string changed_sources(const std::vector<SourceFile>& store, const std::vector<SourceFile>& sources);

// Fails when the store left out malformed rows, unless `skip_bad_rows` (data.on_bad_row) allows it. A run
// names this option in its genesis; with `error` there, this store could not have been built.
Status check_skipped(const std::string& cache_dir, const std::vector<FileLedger>& store, bool skip_bad_rows);

}  // namespace ostro::data
