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
        drop(member);
        if (!used || own_.patience.given_up()) throw;
    }
    try {
        return work(client(member));
    } catch (const Error&) {
        drop(member);
        throw;
    }
}

void PeerSource::drop(Member member) {
    clients_[member].reset();
    asked_.erase(member);
}

void PeerSource::read(Member member, const std::string& file, uint64_t offset, void* to, size_t bytes) {
    if (group_.peers.at(number(member)).host == own_.name) return here_.read(member, file, offset, to, bytes);
    const transfer::Client::Part part{group_.generation, file, offset, bytes};
    ask(member, [&](transfer::Client& client) {
        auto& asked = asked_[member];
        if (asked.empty()) return client.read(part.generation, file, offset, to, bytes);
        if (asked.front() != part) fail("{} is read out of the order that was expected", file);
        asked.pop_front();
        client.take(part, to);
    });
}

// A part that cannot be asked for now is asked for when it is read, and that says why.
void PeerSource::expect(Member member, const std::string& file, uint64_t offset, size_t bytes) {
    if (group_.peers.at(number(member)).host == own_.name || dead_.count(member) > 0) return;
    try {
        const transfer::Client::Part part{group_.generation, file, offset, bytes};
        client(member).ask_for(part);
        asked_[member].push_back(part);
    } catch (const Error&) {
        drop(member);
    }
}

std::vector<std::byte> PeerSource::whole(Member member, const std::string& file, uint64_t most) {
    if (group_.peers.at(number(member)).host == own_.name) {
        auto folder = level::find_generation(own_.folder, own_.job, group_.generation);
        if (!folder) fail("nothing of {} is here", group_.generation.name());
        const std::string text = folder->text(file, most);
        auto* begin = reinterpret_cast<const std::byte*>(text.data());
        return {begin, begin + text.size()};
    }
    always(asked_[member].empty(), "a whole file that is read between parts that were asked for");
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
