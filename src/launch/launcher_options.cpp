#include "launch/launcher_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace fermata::launch {
namespace {

struct Option {
    const char* name;
    unsigned words;  // that follow
};

struct Known {
    const char* name;        // of the library, or "srun"
    const char* people_say;  // whose options these are
    const char* how;         // to get this launcher
    std::vector<Option> options;
};

// Open MPI 4.1's `mpiexec --help all` with what 5.0's has besides, MPICH 4.0's Hydra (utils/args,
// ui/mpich/utils.c), srun 22.05 with what later ones have besides. Left out: what Fermata has itself (-n,
// -np, -v, -q, --mpi), and what replaces the program or starts none (--app, -configfile, --dvm, -info,
// --multi-prog, --test-only).
const std::vector<Known>& all_known() {
    static const std::vector<Known> all = {
        {"openmpi",
         "Open MPI's mpiexec",
         "--mpi openmpi",
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
         "MPICH's mpiexec",
         "--mpi mpich",
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
        {"srun",
         "Slurm's srun",
         "--launcher srun",
         {{"A", 1},
          {"B", 1},
          {"C", 1},
          {"D", 1},
          {"E", 0},
          {"F", 1},
          {"G", 1},
          {"H", 0},
          {"I", 0},
          {"J", 1},
          {"K", 0},
          {"L", 1},
          {"M", 1},
          {"N", 1},
          {"O", 0},
          {"Q", 0},
          {"S", 1},
          {"T", 1},
          {"W", 1},
          {"X", 0},
          {"accel-bind", 1},
          {"account", 1},
          {"acctg-freq", 1},
          {"b", 1},
          {"bb", 1},
          {"bbf", 1},
          {"bcast", 0},
          {"bcast-exclude", 1},
          {"begin", 1},
          {"c", 1},
          {"chdir", 1},
          {"cluster-constraint", 1},
          {"clusters", 1},
          {"comment", 1},
          {"compress", 0},
          {"constraint", 1},
          {"container", 1},
          {"contiguous", 0},
          {"core-spec", 1},
          {"cores-per-socket", 1},
          {"cpu-bind", 1},
          {"cpu-freq", 1},
          {"cpus-per-gpu", 1},
          {"cpus-per-task", 1},
          {"d", 1},
          {"deadline", 1},
          {"delay-boot", 1},
          {"dependency", 1},
          {"disable-status", 0},
          {"distribution", 1},
          {"e", 1},
          {"epilog", 1},
          {"error", 1},
          {"exact", 0},
          {"exclude", 1},
          {"exclusive", 0},
          {"export", 1},
          {"extra-node-info", 1},
          {"gid", 1},
          {"gpu-bind", 1},
          {"gpu-freq", 1},
          {"gpus", 1},
          {"gpus-per-node", 1},
          {"gpus-per-socket", 1},
          {"gpus-per-task", 1},
          {"gres", 1},
          {"gres-flags", 1},
          {"het-group", 1},
          {"hint", 1},
          {"hold", 0},
          {"i", 1},
          {"immediate", 0},
          {"input", 1},
          {"interactive", 0},
          {"job-name", 1},
          {"jobid", 1},
          {"k", 0},
          {"kill-on-bad-exit", 0},
          {"l", 0},
          {"label", 0},
          {"licenses", 1},
          {"m", 1},
          {"mail-type", 1},
          {"mail-user", 1},
          {"mcs-label", 1},
          {"mem", 1},
          {"mem-bind", 1},
          {"mem-per-cpu", 1},
          {"mem-per-gpu", 1},
          {"mincpus", 1},
          {"mpi", 1},
          {"msg-timeout", 1},
          {"network", 1},
          {"nice", 0},
          {"no-kill", 0},
          {"nodefile", 1},
          {"nodelist", 1},
          {"nodes", 1},
          {"ntasks-per-core", 1},
          {"ntasks-per-gpu", 1},
          {"ntasks-per-node", 1},
          {"ntasks-per-socket", 1},
          {"ntasks-per-tres", 1},
          {"o", 1},
          {"open-mode", 1},
          {"output", 1},
          {"overcommit", 0},
          {"overlap", 0},
          {"oversubscribe", 0},
          {"p", 1},
          {"partition", 1},
          {"power", 1},
          {"prefer", 1},
          {"preserve-env", 0},
          {"priority", 1},
          {"profile", 1},
          {"prolog", 1},
          {"propagate", 0},
          {"qos", 1},
          {"quiet", 0},
          {"quit-on-interrupt", 0},
          {"r", 1},
          {"reboot", 0},
          {"relative", 1},
          {"reservation", 1},
          {"resv-ports", 0},
          {"s", 0},
          {"send-libs", 0},
          {"signal", 1},
          {"slurmd-debug", 1},
          {"sockets-per-node", 1},
          {"spread-job", 0},
          {"switches", 1},
          {"t", 1},
          {"task-epilog", 1},
          {"task-prolog", 1},
          {"thread-spec", 1},
          {"threads-per-core", 1},
          {"time", 1},
          {"time-min", 1},
          {"tmp", 1},
          {"tres-bind", 1},
          {"tres-per-task", 1},
          {"u", 0},
          {"uid", 1},
          {"unbuffered", 0},
          {"use-min-nodes", 0},
          {"w", 1},
          {"wait", 1},
          {"wckey", 1},
          {"x", 1},
          {"x11", 0}}},
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

const Option* option_named(const Known& known, const std::string& name) {
    auto found = std::find_if(known.options.begin(), known.options.end(),
                              [&](const Option& option) { return name == option.name; });
    return found == known.options.end() ? nullptr : &*found;
}

// "-N2", "-K0": a number may stand behind srun's letters.
bool letter_and_number(const Known& known, const std::string& word) {
    return known.name == std::string_view("srun") && word.size() > 2 && word[0] == '-' && word[1] != '-' &&
           word.find_first_not_of("0123456789", 2) == std::string::npos;
}

const Option* option_of(const Known& known, const std::string& word) {
    return option_named(known, letter_and_number(known, word) ? word.substr(1, 1) : name_in(word));
}

unsigned words_after(const Known& known, const Option& option, const std::string& word) {
    bool has_one = word.find('=') != std::string::npos || letter_and_number(known, word);
    return option.words > 0 && has_one ? option.words - 1 : option.words;
}

const Known* known_as(const std::string& launcher) {
    auto found =
        std::find_if(all_known().begin(), all_known().end(), [&](auto& k) { return launcher == k.name; });
    return found == all_known().end() ? nullptr : &*found;
}

// Letters of srun that Fermata looks at, or that are no option of any launcher (-n).
constexpr std::pair<char, const char*> kLetters[] = {
    {'c', "cpus-per-task"}, {'D', "chdir"},         {'i', "input"},    {'n', "ntasks"}, {'N', "nodes"},
    {'O', "overcommit"},    {'s', "oversubscribe"}, {'w', "nodelist"}, {'x', "exclude"}};
constexpr const char* kRanks = "ntasks";

// The one name that begins so; else `name`.
std::string whole_name(const Known& srun, const std::string& name) {
    std::vector<std::string> found;
    for (const Option& option : srun.options)
        if (std::string_view(option.name).starts_with(name)) found.emplace_back(option.name);
    if (std::string_view(kRanks).starts_with(name)) found.emplace_back(kRanks);
    const bool exact = std::find(found.begin(), found.end(), name) != found.end();
    return exact || found.size() != 1 ? name : found[0];
}

bool takes_word(const Known& srun, const std::string& name) {
    const Option* option = option_named(srun, name);
    return name == kRanks || name == "n" || (option && option->words > 0);
}

// "-lN2": the letters of words[at], and what belongs to the last one.
void add_letters(const Known& srun, const std::vector<std::string>& words, size_t& at,
                 std::vector<std::string>& all) {
    const std::string& word = words[at];
    for (size_t i = 1; i < word.size(); ++i) {
        const std::string letter(1, word[i]);
        auto named = std::find_if(std::begin(kLetters), std::end(kLetters),
                                  [&](auto& known) { return known.first == word[i]; });
        const std::string name =
            named == std::end(kLetters) ? "-" + letter : fmt::format("--{}", named->second);
        // A value of these two, if any, stands right behind.
        const bool attached = letter == "I" || letter == "K";
        if (!attached && !takes_word(srun, letter)) {
            all.push_back(name);
            continue;
        }
        const bool here = attached || i + 1 < word.size();
        const std::string value = here ? word.substr(i + 1) : at + 1 < words.size() ? words[++at] : "";
        all.push_back(name + (name.size() > 2 ? "=" : "") + value);
        return;
    }
}

}  // namespace

std::vector<std::string> srun_words(const std::vector<std::string>& words) {
    const Known& srun = *known_as("srun");
    std::vector<std::string> all;
    for (size_t at = 0; at < words.size(); ++at) {
        const std::string& word = words[at];
        if (word.size() < 2 || word[0] != '-' || word == "--") {
            all.push_back(word);
            continue;
        }
        if (word[1] != '-') {
            add_letters(srun, words, at, all);
            continue;
        }
        const size_t equals = word.find('=');
        const std::string name = whole_name(srun, word.substr(2, equals == word.npos ? equals : equals - 2));
        if (equals != word.npos)
            all.push_back("--" + name + word.substr(equals));
        else if (takes_word(srun, name) && at + 1 < words.size())
            all.push_back(fmt::format("--{}={}", name, words[++at]));
        else
            all.push_back("--" + name);
    }
    return all;
}

std::optional<unsigned> words_after_launcher_option(const std::string& word) {
    for (const Known& known : all_known())
        if (const Option* option = option_of(known, word)) return words_after(known, *option, word);
    return {};
}

void check_launcher_options(const std::string& launcher, const std::vector<std::string>& words) {
    const Known* chosen = known_as(launcher);
    if (!chosen) return;
    for (size_t at = 0; at < words.size();) {
        const std::string& word = words[at];
        if (const Option* option = option_of(*chosen, word)) {
            at += 1 + words_after(*chosen, *option, word);
            continue;
        }
        for (const Known& other : all_known())
            if (option_of(other, word))
                // In an allocation the library alone is still started by srun.
                throw Error(fmt::format("{} is an option of {}, and {} starts this job: leave it out, or "
                                        "choose that one with {}{}",
                                        word, other.people_say, chosen->people_say,
                                        launcher == "srun" ? "--launcher mpiexec " : "", other.how),
                            ExitCode::usage);
        ++at;
    }
}

bool are_options_of(const std::string& launcher, const std::vector<std::string>& words) {
    const Known* known = known_as(launcher);
    for (size_t at = 0; known && at < words.size();) {
        const Option* option = option_of(*known, words[at]);
        if (!option) return false;
        at += 1 + words_after(*known, *option, words[at]);
    }
    return known != nullptr;
}

std::string working_directory_of(const std::vector<std::string>& words) {
    std::string directory;
    for (size_t at = 0; at < words.size(); ++at) {
        std::string name = name_in(words[at]);
        if (name != "wdir" && name != "wd" && name != "chdir" && name != "D") continue;
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
