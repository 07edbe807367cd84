#include "launch/own/usable.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "launch/launcher_options.h"
#include "launch/programs.h"

namespace fermata::launch::own {
namespace {

constexpr unsigned kAnswerSeconds = 10;

// "a" of "a.example.org": a host calls itself by the one or the other.
std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> ssh_words() {
    const char* given = std::getenv("FERMATA_SSH");
    std::vector<std::string> words =
        split_words(given && *given ? given : "ssh -x -o BatchMode=yes -o ConnectTimeout=30");
    if (words.empty()) throw Error("FERMATA_SSH names no program", ExitCode::usage);
    return words;
}

std::vector<std::string> to_be_asked(const std::vector<Host>& hosts,
                                     const std::vector<std::string>& suspects) {
    std::vector<std::string> asked;
    bool all = false;
    for (const std::string& suspect : suspects) {
        bool known = is_here(suspect);
        for (const Host& host : hosts) {
            if (first_label(host.name) != first_label(suspect)) continue;
            known = true;
            if (!is_here(host.name) && !contains(asked, host.name)) asked.push_back(host.name);
        }
        all = all || !known;
    }
    if (!all) return asked;
    asked.clear();
    for (const Host& host : hosts)
        if (!is_here(host.name)) asked.push_back(host.name);
    return asked;
}

std::vector<std::string> silent_hosts(const std::vector<std::string>& hosts) {
    std::vector<std::string> silent;
    if (hosts.empty()) return silent;
    std::vector<std::string> words = ssh_words();
    if (words[0].find('/') == std::string::npos) words[0] = in_path(words[0]);
    std::vector<std::pair<std::string, pid_t>> asked;
    for (const std::string& host : hosts) {
        std::vector<std::string> command = words;
        command.insert(command.end(), {host, "exec true"});
        asked.emplace_back(host, start_silently(command, kAnswerSeconds));
    }
    for (auto& [host, pid] : asked)
        if (!ended_well(pid)) silent.push_back(host);
    return silent;
}

std::vector<Host> usable(std::vector<Host> hosts, const std::vector<std::string>& silent, unsigned spares) {
    const size_t all = hosts.size();
    if (spares >= all && spares > 0)
        throw Error(fmt::format("--spares {}: of {} host{} none would be left for ranks", spares, all,
                                all == 1 ? "" : "s"),
                    ExitCode::usage);
    std::erase_if(hosts, [&](const Host& host) { return contains(silent, host.name); });
    if (hosts.empty()) fail("no host is left: {} cannot be used any more", fmt::join(silent, ", "));
    if (hosts.size() > all - spares) hosts.resize(all - spares);
    return hosts;
}

}  // namespace fermata::launch::own
