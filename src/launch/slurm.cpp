#include "launch/slurm.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "launch/programs.h"

namespace fermata::launch {
namespace {

constexpr size_t kMostNodes = 1'000'000;
constexpr unsigned kAnswerSeconds = 10;

std::string value(const char* name) {
    const char* found = std::getenv(name);
    return found ? found : "";
}

std::optional<unsigned> number_in(std::string_view text) {
    unsigned number = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || at != text.data() + text.size()) return {};
    return number;
}

// Pieces between commas that stand in no brackets.
std::vector<std::string_view> pieces_of(std::string_view text) {
    std::vector<std::string_view> pieces;
    int depth = 0;
    size_t begin = 0;
    for (size_t at = 0; at <= text.size(); ++at) {
        if (at < text.size() && text[at] == '[') ++depth;
        if (at < text.size() && text[at] == ']') --depth;
        if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
        pieces.push_back(text.substr(begin, at - begin));
        begin = at + 1;
    }
    return pieces;
}

// "01-03" behind a name: false when it is no range, or too long.
bool add_range(std::vector<std::string>& hosts, const std::string& before, std::string_view range,
               const std::string& after) {
    size_t dash = range.find('-');
    std::string_view first = range.substr(0, dash);
    std::string_view last = dash == range.npos ? first : range.substr(dash + 1);
    auto from = number_in(first), to = number_in(last);
    if (!from || !to || *to < *from || hosts.size() + (*to - *from) >= kMostNodes) return false;
    for (unsigned number = *from;; ++number) {
        std::string digits = std::to_string(number);
        if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
        hosts.push_back(before + digits + after);
        if (number == *to) return true;
    }
}

// One piece; only one pair of brackets, as nearly all sites have it.
bool add_hosts(std::vector<std::string>& hosts, std::string_view piece) {
    size_t open = piece.find('['), close = piece.find(']');
    if (open == piece.npos && close == piece.npos) {
        hosts.emplace_back(piece);
        return !piece.empty();
    }
    if (open == piece.npos || close == piece.npos || close < open ||
        piece.find_first_of("[]", close + 1) != piece.npos)
        return false;
    std::string before(piece.substr(0, open)), after(piece.substr(close + 1));
    for (std::string_view range : pieces_of(piece.substr(open + 1, close - open - 1)))
        if (!add_range(hosts, before, range, after)) return false;
    return true;
}

}  // namespace

void forget_option_of_plugin() {
    for (const char* one : {"fermata", "fermata_options"})
        for (const char* before :
             {"SLURM_SPANK__SLURM_SPANK_OPTION_fermata_", "_SLURM_SPANK_OPTION_fermata_"})
            ::unsetenv((std::string(before) + one).c_str());
}

bool in_allocation() { return !value("SLURM_JOB_ID").empty(); }

// A plugin a line, behind blanks; versions behind "specific pmix plugin versions available:".
std::vector<std::string> plugins_in(const std::string& text) {
    std::vector<std::string> found;
    auto blank = [](char c) { return std::string_view(" \t,").find(c) != std::string_view::npos; };
    for (size_t at = 0; at < text.size();) {
        std::string line = text.substr(at, text.find('\n', at) - at) + " ";
        at += line.size();
        constexpr std::string_view kVersions = "available:";
        size_t begin = line.find(kVersions);
        if (begin == line.npos && !blank(line[0])) continue;
        std::string word;
        for (char c : line.substr(begin == line.npos ? 0 : begin + kVersions.size())) {
            if (!blank(c))
                word += c;
            else if (!word.empty() && std::find(found.begin(), found.end(), word) == found.end())
                found.push_back(std::exchange(word, {}));
            else
                word.clear();
        }
    }
    return found;
}

std::vector<std::string> mpi_plugins(const std::string& srun) {
    return plugins_in(output_of(srun, {"--mpi=list"}));
}

std::vector<unsigned> processors_in(const std::string& text) {
    std::vector<unsigned> all;
    for (std::string_view piece : pieces_of(text)) {
        size_t open = piece.find("(x");
        auto each = number_in(piece.substr(0, open));
        std::optional<unsigned> times = 1;
        if (open != piece.npos)
            times = piece.ends_with(")") ? number_in(piece.substr(open + 2, piece.size() - open - 3))
                                         : std::nullopt;
        if (!each || !times || all.size() + *times > kMostNodes) return {};
        all.insert(all.end(), *times, *each);
    }
    return all;
}

std::vector<std::string> hosts_in(const std::string& text) {
    std::vector<std::string> hosts;
    for (std::string_view piece : pieces_of(text))
        if (!add_hosts(hosts, piece)) return {};
    return hosts;
}

std::map<std::string, unsigned> nodes_left(const std::vector<std::string>& avoid) {
    std::vector<std::string> hosts = hosts_in(value("SLURM_JOB_NODELIST"));
    std::vector<unsigned> processors = processors_in(value("SLURM_JOB_CPUS_PER_NODE"));
    std::map<std::string, unsigned> left;
    if (hosts.size() != processors.size()) return left;
    for (size_t i = 0; i < hosts.size(); ++i)
        if (std::find(avoid.begin(), avoid.end(), hosts[i]) == avoid.end()) left[hosts[i]] = processors[i];
    return left;
}

std::vector<std::string> spare_nodes(const std::vector<std::string>& avoid, unsigned spares) {
    if (spares == 0) return {};
    std::vector<std::string> hosts = hosts_in(value("SLURM_JOB_NODELIST"));
    if (spares >= hosts.size())
        throw Error(
            fmt::format("--spares {}: of {} nodes none would be left for ranks", spares, hosts.size()),
            ExitCode::usage);
    const size_t wanted = hosts.size() - spares;
    std::erase_if(hosts, [&](const std::string& host) {
        return std::find(avoid.begin(), avoid.end(), host) != avoid.end();
    });
    hosts.erase(hosts.begin(), hosts.begin() + static_cast<ptrdiff_t>(std::min(wanted, hosts.size())));
    return hosts;
}

// Slurm itself may not know for minutes (SlurmdTimeout) that a node is gone; and one that has only lost the
// node daemon can still be used.
std::vector<std::string> silent_nodes(const std::string& srun, const std::vector<std::string>& suspects) {
    std::vector<std::pair<std::string, pid_t>> asked;
    for (const std::string& host : suspects) {
        std::vector<std::string> words = {
            srun,         "--overlap", "--nodes=1",    "--ntasks=1", "--nodelist=" + host,
            "--mpi=none", "--quiet",   "--input=none", "--mem=0",    "/bin/true"};
        asked.emplace_back(host, start_silently(words, kAnswerSeconds));
    }
    std::vector<std::string> silent;
    for (auto& [host, pid] : asked)
        if (!ended_well(pid)) silent.push_back(host);
    return silent;
}

}  // namespace fermata::launch
