#include "noded/peer_source.h"

#include "base/error.h"
#include "base/invariant.h"
#include "level/memory.h"

namespace fermata::noded {
namespace {

using erasure::Member;

std::vector<std::optional<files::Folder>> only_here(const OwnNode& own, const wire::PeerGroup& group) {
    std::vector<std::optional<files::Folder>> folders(group.peers.size());
    for (size_t i = 0; i < group.peers.size(); ++i)
        if (group.peers[i].host == own.name)
            folders[i] = level::find_generation(own.folder, own.job, group.generation);
    return folders;
}

}  // namespace

PeerSource::PeerSource(const OwnNode& own, const wire::PeerGroup& group)
    : own_(own), group_(group), here_(only_here(own, group)) {
    always(!own_.name.empty(), "a node without a name");
}

transfer::Client& PeerSource::client(Member member) {
    auto& client = clients_[member];
    const wire::Peer& peer = group_.peers.at(number(member));
    if (!client) try {
            if (peer.addresses.empty()) fail("nobody can say how {} is reached", peer.host);
            client = std::make_unique<transfer::Client>(peer.addresses, NodePlace{peer.host}, own_.key,
                                                        own_.patience);
        } catch (const Error& error) {
            dead_[member] = error.what();
            throw;
        }
    return *client;
}

// A connection on which nothing was asked for a while has ended: then it is made anew, once.
template <class Work>
auto PeerSource::ask(Member member, Work work) {
    if (auto why = dead_.find(member); why != dead_.end()) fail("{}", why->second);
    const bool used = clients_[member] != nullptr;
    try {
        return work(client(member));
    } catch (const Error&) {
        clients_[member].reset();
        if (!used || own_.patience.given_up()) throw;
    }
    try {
        return work(client(member));
    } catch (const Error&) {
        clients_[member].reset();
        throw;
    }
}

void PeerSource::read(Member member, const std::string& file, uint64_t offset, void* to, size_t bytes) {
    if (group_.peers.at(number(member)).host == own_.name) return here_.read(member, file, offset, to, bytes);
    ask(member, [&](transfer::Client& client) { client.read(group_.generation, file, offset, to, bytes); });
}

std::vector<std::byte> PeerSource::whole(Member member, const std::string& file, uint64_t most) {
    if (group_.peers.at(number(member)).host == own_.name) {
        auto folder = level::find_generation(own_.folder, own_.job, group_.generation);
        if (!folder) fail("nothing of {} is here", group_.generation.name());
        const std::string text = folder->text(file, most);
        auto* begin = reinterpret_cast<const std::byte*>(text.data());
        return {begin, begin + text.size()};
    }
    return ask(member, [&](transfer::Client& client) {
        std::vector<std::byte> all;
        const uint64_t size = client.read(
            group_.generation, file, 0, most,
            [&](transfer::View piece, uint64_t) { all.insert(all.end(), piece.begin(), piece.end()); });
        if (size != all.size())
            fail("{} of {} has {} bytes", file, group_.peers.at(number(member)).host, size);
        return all;
    });
}

}  // namespace fermata::noded
