#include "lower/netmod.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

#include "lower/node_ranks.h"

namespace fermata::lower {
namespace {

constexpr const char* kVariable = "MPIR_CVAR_CH4_NETMOD";
// Each MPICH variable has these older names as well.
constexpr const char* kNames[] = {kVariable, "MPIR_PARAM_CH4_NETMOD", "MPICH_CH4_NETMOD"};
// The oldest release seen to lose such a receive.
constexpr std::pair kFirstLosing{4, 3};

// The text behind `name` in its line; empty: no such line.
std::string_view field(std::string_view text, std::string_view name) {
    size_t at = text.find(name);
    if (at == std::string_view::npos) return {};
    std::string_view rest = text.substr(at + name.size());
    rest = rest.substr(0, rest.find('\n'));
    size_t begin = rest.find_first_not_of(" \t");
    return begin == std::string_view::npos ? std::string_view{} : rest.substr(begin);
}

std::optional<std::pair<int, int>> release_of(std::string_view version) {
    std::pair<int, int> release;
    const char* end = version.data() + version.size();
    auto [dot, bad] = std::from_chars(version.data(), end, release.first);
    if (bad != std::errc{} || dot == end || *dot != '.') return std::nullopt;
    if (std::from_chars(dot + 1, end, release.second).ec != std::errc{}) return std::nullopt;
    return release;
}

bool has_word(std::string_view words, std::string_view word) {
    for (size_t at = 0; at < words.size();) {
        size_t end = std::min(words.find_first_of(" ,", at), words.size());
        if (words.substr(at, end - at) == word) return true;
        at = end + 1;
    }
    return false;
}

// A build with UCX alone has no shared memory of MPICH's own, unless it was configured with one.
bool has_shared_memory(std::string_view configured) {
    constexpr std::string_view kOption = "--with-ch4-shmmods=";
    size_t at = configured.find(kOption);
    if (at == std::string_view::npos) return false;
    std::string_view value = configured.substr(at + kOption.size());
    value = value.substr(0, value.find_first_of(" '"));
    return value != "none" && value != "no" && value != "auto";
}

std::string_view wanted_by_user() {
    for (const char* name : kNames)
        if (const char* value = std::getenv(name)) return value;
    return {};
}

bool one_node() {
    if (int here = node_ranks(); here > 0) return here == number_from({"PMI_SIZE"}, 0);
    return number_from({"SLURM_STEP_NUM_NODES"}, 0) == 1;
}

}  // namespace

Netmod netmod_for(std::string_view text, std::string_view wanted) {
    constexpr std::string_view kDevice = "ch4:";
    std::string_view device = field(text, "MPICH Device:");
    auto release = release_of(field(text, "MPICH Version:"));
    if (!release || *release < kFirstLosing || !device.starts_with(kDevice)) return Netmod::as_it_is;
    std::string_view modules = device.substr(kDevice.size());
    const bool by_ucx = wanted.empty() ? modules.starts_with("ucx") : wanted == "ucx";
    if (!by_ucx || !has_word(modules, "ucx")) return Netmod::as_it_is;
    if (has_word(modules, "ofi")) return wanted.empty() ? Netmod::ofi : Netmod::losing;
    return has_shared_memory(field(text, "MPICH configure:")) ? Netmod::losing : Netmod::as_it_is;
}

NetmodChoice::NetmodChoice(std::string_view text) {
    if (one_node()) return;
    made_ = netmod_for(text, wanted_by_user());
    if (made_ == Netmod::ofi) ::setenv(kVariable, "ofi", 1);
}

NetmodChoice::~NetmodChoice() {
    if (made_ == Netmod::ofi) ::unsetenv(kVariable);
}

std::string NetmodChoice::line() const {
    switch (made_) {
        case Netmod::ofi:
            return "this MPICH talks between nodes by libfabric (netmod ofi): over UCX its receives from "
                   "MPI_ANY_SOURCE may never end, without Fermata too; MPIR_CVAR_CH4_NETMOD=ucx overrides "
                   "that";
        case Netmod::losing:
            return "warning: this MPICH talks between nodes over UCX, where its receives from MPI_ANY_SOURCE "
                   "may "
                   "never end, without Fermata too; MPIR_CVAR_CH4_NETMOD=ofi helps where it was built with "
                   "that";
        case Netmod::as_it_is:
            break;
    }
    return {};
}

}  // namespace fermata::lower
