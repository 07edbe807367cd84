// Open MPI 4.1.4 and MPICH 4.0.2 change to --wdir first: relative names and relative folders of PATH count
// from there.
#include "launch/program_place.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "launch/launcher_options.h"
#include "split/loader/real_mpi.h"

namespace fermata::launch {
namespace {

bool is_option(const std::string& word, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (word == std::string("-") + name || word == std::string("--") + name) return true;
    return false;
}

bool changes_path(const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (word == "PATH" || word.starts_with("PATH=") || is_option(word, {"path", "prefix"})) return true;
    return false;
}

// The process in another directory, and back. `fermata run` has no second thread yet.
class Visit {
  public:
    explicit Visit(const std::string& directory) {
        if (directory.empty()) return;
        home_ = Fd(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!home_ || ::chdir(directory.c_str()) != 0)
            fail_errno("cannot look for the program in {}", directory);
    }
    ~Visit() {
        if (home_ && ::fchdir(home_.get()) != 0) ::_exit(1);  // everything relative would be wrong
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

  private:
    Fd home_;
};

}  // namespace

ProgramPlace find_program(const std::string& name, const std::vector<std::string>& words,
                          const std::string& front_dir) {
    Visit visit(working_directory_of(words));
    ProgramPlace place{split::inspect_program(name, front_dir), ""};
    split::ElfFile binary;
    if (std::string& error = place.check.error; error.empty() && place.check.abi == split::MpiAbi::none &&
                                                split::why_no_starter(place.check).empty() &&
                                                binary.read(place.check.binary).empty() &&
                                                split::has_mpi_inside(binary))
        error = fmt::format(
            "{} has an MPI library linked into it, which cannot be replaced: link it with the shared one",
            place.check.binary);
    if (place.check.error.empty() && !changes_path(words)) place.path = place.check.program;
    return place;
}

}  // namespace fermata::launch
