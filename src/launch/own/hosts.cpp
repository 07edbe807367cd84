#include "launch/own/hosts.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "base/host_name.h"
#include "base/text.h"

namespace fermata::launch::own {
namespace {

[[noreturn]] void wrong(const std::string& line) { throw Error(line, ExitCode::usage); }

// As ssh and the resolver take it; nothing that ssh would read as an option.
bool is_name(std::string_view name) {
    auto good = [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '@';
    };
    return !name.empty() && name.size() <= 255 && name[0] != '-' &&
           std::all_of(name.begin(), name.end(), good);
}

uint32_t number(std::string_view text, const std::string& where) {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > kMostSlots)
        wrong(fmt::format("{}: '{}' is no number of slots", where, visible(std::string(text))));
    return value;
}

void add(std::vector<Host>& hosts, Host host, const std::string& where) {
    if (!is_name(host.name)) wrong(fmt::format("{}: '{}' is no name of a host", where, visible(host.name)));
    if (hosts.size() >= kMostHosts) wrong(fmt::format("{}: more than {} hosts", where, kMostHosts));
    for (Host& one : hosts)
        if (one.name == host.name) {
            one.slots = std::min(one.slots + host.slots, kMostSlots);
            one.given = one.given || host.given;
            return;
        }
    hosts.push_back(std::move(host));
}

std::string_view trimmed(std::string_view text) {
    size_t first = text.find_first_not_of(" \t\r");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// "name:4", or a name alone.
Host host_of(std::string_view word, uint32_t otherwise, const std::string& where) {
    size_t colon = word.find(':');
    Host host{std::string(word.substr(0, colon)), otherwise, false};
    if (colon != word.npos) host.slots = number(word.substr(colon + 1), where), host.given = true;
    return host;
}

}  // namespace

std::vector<Host> hosts_in_list(std::string_view list) {
    std::vector<Host> hosts;
    for (size_t at = 0; at <= list.size();) {
        size_t end = std::min(list.find(',', at), list.size());
        std::string_view word = trimmed(list.substr(at, end - at));
        if (!word.empty()) add(hosts, host_of(word, 1, "--hosts"), "--hosts");
        at = end + 1;
    }
    if (hosts.empty()) wrong("--hosts names no host");
    return hosts;
}

std::vector<Host> hosts_in_file(std::string_view text, const std::string& where) {
    std::vector<Host> hosts;
    size_t lines = 0;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        const std::string place = fmt::format("{}, line {}", where, ++lines);
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty()) continue;
        size_t blank = std::min(line.find_first_of(" \t"), line.size());
        Host host = host_of(line.substr(0, blank), 0, place);
        for (std::string_view rest = trimmed(line.substr(blank)); !rest.empty();) {
            size_t next = std::min(rest.find_first_of(" \t"), rest.size());
            std::string_view word = rest.substr(0, next);
            rest = trimmed(rest.substr(next));
            if (word.starts_with("slots="))
                host.slots = number(word.substr(6), place), host.given = true;
            else if (!word.starts_with("max_slots=") && !word.starts_with("max-slots="))
                wrong(fmt::format("{}: '{}' is not understood: a line is NAME, NAME:4 or NAME slots=4", place,
                                  visible(std::string(word))));
        }
        add(hosts, std::move(host), place);
    }
    if (hosts.empty()) wrong(fmt::format("{} names no host", where));
    return hosts;
}

std::vector<uint32_t> slurm_counts(std::string_view text) {
    std::vector<uint32_t> counts;
    const std::string where = "the tasks per node that Slurm says";
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(',', at), text.size());
        std::string_view word = text.substr(at, end - at);
        at = end + 1;
        uint32_t times = 1;
        if (size_t bracket = word.find("(x"); bracket != word.npos) {
            if (!word.ends_with(')')) wrong(fmt::format("{}: '{}'", where, visible(std::string(word))));
            times = number(word.substr(bracket + 2, word.size() - bracket - 3), where);
            word = word.substr(0, bracket);
        }
        if (counts.size() + times > kMostHosts) wrong(fmt::format("{}: too many nodes", where));
        counts.insert(counts.end(), times, number(word, where));
    }
    return counts;
}

bool is_here(const std::string& name) {
    const std::string full = host_name();
    return name == "localhost" || name == "127.0.0.1" || name == full || full.starts_with(name + ".") ||
           name.starts_with(full + ".");
}

}  // namespace fermata::launch::own
