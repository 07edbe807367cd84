// Options of the libraries' own mpiexec, as people put them where they put Fermata's. Which library knows
// which, and how many words follow, is a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fermata::launch {

// Words that follow `word` ("-host", "--mca", "-host=a"), when it is an option of some library's mpiexec.
std::optional<unsigned> words_after_launcher_option(const std::string& word);

// Throws Error (exit code 2) with the first of these options that the mpiexec of `mpi` does not know, and
// where it belongs. `words`: options with what follows each.
void check_launcher_options(const std::string& mpi, const std::vector<std::string>& words);

// Where mpiexec starts the ranks, when these words (with those of --mpiexec-args) say so; else empty.
std::string working_directory_of(const std::vector<std::string>& words);

// Words of a string as a shell splits them: blanks, '…', "…", backslash.
std::vector<std::string> split_words(const std::string& text);

}  // namespace fermata::launch
