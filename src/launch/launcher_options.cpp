#include "launch/launcher_options.h"

#include <algorithm>

#include "base/error.h"

namespace fermata::launch {
namespace {

struct Option {
    const char* name;
    unsigned words;  // that follow
};

struct Known {
    const char* mpi;
    const char* people_say;
    std::vector<Option> options;
};

// Open MPI 4.1's `mpiexec --help all` with what 5.0's has besides, MPICH 4.0's Hydra (utils/args,
// ui/mpich/utils.c). Left out: what Fermata has itself (-n, -np, -v, -q), and what replaces the program or
// starts none (--app, -configfile, --dvm, -info).
const std::vector<Known>& all_known() {
    static const std::vector<Known> all = {
        {"openmpi",
         "Open MPI",
         {{"H", 1},
          {"N", 1},
          {"allow-run-as-root", 0},
          {"am", 1},
          {"bind-to", 1},
          {"bind-to-core", 0},
          {"bind-to-none", 0},
          {"bind-to-socket", 0},
          {"bycore", 0},
          {"bynode", 0},
          {"byslot", 0},
          {"cpu-list", 1},
          {"cpu-set", 1},
          {"cpus-per-proc", 1},
          {"cpus-per-rank", 1},
          {"default-hostfile", 1},
          {"disable-recovery", 0},
          {"display", 1},
          {"display-allocation", 0},
          {"display-map", 0},
          {"display-topo", 0},
          {"do-not-resolve", 0},
          {"enable-recovery", 0},
          {"get-stack-traces", 0},
          {"gmca", 2},
          {"host", 1},
          {"hostfile", 1},
          {"launch-agent", 1},
          {"leave-session-attached", 0},
          {"machinefile", 1},
          {"map-by", 1},
          {"mca", 2},
          {"merge-stderr-to-stdout", 0},
          {"nolocal", 0},
          {"nooversubscribe", 0},
          {"noprefix", 0},
          {"npernode", 1},
          {"npersocket", 1},
          {"ompi-server", 1},
          {"output", 1},
          {"output-filename", 1},
          {"oversubscribe", 0},
          {"path", 1},
          {"pernode", 0},
          {"personality", 1},
          {"pmixmca", 2},
          {"ppr", 1},
          {"prefix", 1},
          {"prtemca", 2},
          {"quiet", 0},
          {"rank-by", 1},
          {"rankfile", 1},
          {"report-bindings", 0},
          {"report-pid", 1},
          {"report-state-on-timeout", 0},
          {"report-uri", 1},
          {"rf", 1},
          {"runtime-options", 1},
          {"show-progress", 0},
          {"stdin", 1},
          {"tag-output", 0},
          {"timeout", 1},
          {"timestamp-output", 0},
          {"tune", 1},
          {"use-hwthread-cpus", 0},
          {"wd", 1},
          {"wdir", 1},
          {"x", 1},
          {"xml", 0},
          {"xterm", 1}}},
        {"mpich",
         "MPICH",
         {{"N", 1},
          {"bind-to", 1},
          {"binding", 1},
          {"bootstrap", 1},
          {"bootstrap-exec", 1},
          {"demux", 1},
          {"disable-auto-cleanup", 0},
          {"disable-hostname-propagation", 0},
          {"disable-x", 0},
          {"enable-x", 0},
          {"env", 2},
          {"envall", 0},
          {"envlist", 1},
          {"envnone", 0},
          {"errfile-pattern", 1},
          {"f", 1},
          {"genv", 2},
          {"genvall", 0},
          {"genvlist", 1},
          {"genvnone", 0},
          {"gpus-per-proc", 1},
          {"host", 1},
          {"hostfile", 1},
          {"hosts", 1},
          {"iface", 1},
          {"l", 0},
          {"launcher", 1},
          {"launcher-exec", 1},
          {"localhost", 1},
          {"machinefile", 1},
          {"map-by", 1},
          {"membind", 1},
          {"nameserver", 1},
          {"order-nodes", 1},
          {"outfile-pattern", 1},
          {"pmi-port", 0},
          {"ppn", 1},
          {"prepend-pattern", 1},
          {"prepend-rank", 0},
          {"print-all-exitcodes", 0},
          {"profile", 0},
          {"rmk", 1},
          {"skip-launch-node", 0},
          {"topolib", 1},
          {"usize", 1},
          {"wdir", 1}}},
    };
    return all;
}

// "--wdir=D" -> "wdir"; empty when it is none. One letter has one dash.
std::string name_in(const std::string& word) {
    size_t dashes = word.starts_with("--") ? 2 : word.starts_with("-") ? 1 : 0;
    std::string name =
        word.substr(dashes, word.find('=') == std::string::npos ? word.npos : word.find('=') - dashes);
    return dashes == 0 || (dashes == 2 && name.size() == 1) ? "" : name;
}

const Option* option_of(const Known& known, const std::string& word) {
    std::string name = name_in(word);
    auto found = std::find_if(known.options.begin(), known.options.end(),
                              [&](const Option& option) { return name == option.name; });
    return found == known.options.end() ? nullptr : &*found;
}

unsigned words_after(const Option& option, const std::string& word) {
    return option.words > 0 && word.find('=') != std::string::npos ? option.words - 1 : option.words;
}

}  // namespace

std::optional<unsigned> words_after_launcher_option(const std::string& word) {
    for (const Known& known : all_known())
        if (const Option* option = option_of(known, word)) return words_after(*option, word);
    return {};
}

void check_launcher_options(const std::string& mpi, const std::vector<std::string>& words) {
    auto chosen = std::find_if(all_known().begin(), all_known().end(), [&](auto& k) { return mpi == k.mpi; });
    if (chosen == all_known().end()) return;
    for (size_t at = 0; at < words.size();) {
        const std::string& word = words[at];
        auto follow = words_after_launcher_option(word);
        at += 1 + follow.value_or(0);
        if (option_of(*chosen, word)) continue;
        for (const Known& other : all_known())
            if (option_of(other, word))
                throw Error(
                    fmt::format(
                        "{} is an option of {}'s mpiexec, and this job runs under {}'s: leave it out, "
                        "or choose that library with --mpi {}",
                        word, other.people_say, chosen->people_say, other.mpi),
                    ExitCode::usage);
    }
}

std::string working_directory_of(const std::vector<std::string>& words) {
    std::string directory;
    for (size_t at = 0; at < words.size(); ++at) {
        std::string name = name_in(words[at]);
        if (name != "wdir" && name != "wd") continue;
        size_t equals = words[at].find('=');
        if (equals != std::string::npos)
            directory = words[at].substr(equals + 1);
        else if (at + 1 < words.size())
            directory = words[++at];
    }
    return directory;
}

std::vector<std::string> split_words(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    bool open = false;
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (quote) {
            if (c == quote)
                quote = 0;
            else if (c == '\\' && quote == '"' && i + 1 < text.size())
                word += text[++i];
            else
                word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
            open = true;
        } else if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
            open = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            if (open) words.push_back(std::move(word));
            word.clear();
            open = false;
        } else {
            word += c;
            open = true;
        }
    }
    if (quote)
        throw Error(fmt::format("--mpiexec-args has an unclosed {}: {}", quote, text), ExitCode::usage);
    if (open) words.push_back(std::move(word));
    return words;
}

}  // namespace fermata::launch
