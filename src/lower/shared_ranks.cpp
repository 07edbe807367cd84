#include "lower/shared_ranks.h"

#include <mpi.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/invariant.h"
#include "lower/binding/binding.h"
#include "lower/binding/library.h"
#include "lower/services.h"

namespace fermata::lower {
namespace {

namespace shared = split::shared;

constexpr int kTag = 4711;  // nothing else is under way on the private world then
constexpr int kMostText = 4096;

void check(int code, const char* call) {
    if (code) fail("{} failed (MPI error class {})", call, code);
}

}  // namespace

std::unique_ptr<shared::Roster> exchange_uses(uint64_t private_world, Rank rank, int size) {
    const mpi::Table& table = binding_table();
    mpi::RealComm world{private_world};
    mpi::RealDatatype byte = real_Datatype(MPI_BYTE), number = real_Datatype(MPI_INT);
    std::vector<shared::Use> mine;
    std::string error;
    try {
        mine = shared::find_uses(process_limits().descriptors);
    } catch (const std::exception& why) {
        error = why.what();
    }
    int bytes = error.empty() ? static_cast<int>(mine.size() * sizeof(shared::Use)) : 0;
    always(size > 0, "a world without ranks");
    std::vector<int> counts(static_cast<size_t>(size)), at(counts.size());
    check(table.Allgather(&bytes, 1, number, counts.data(), 1, number, world), "MPI_Allgather");
    int all = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
        at[i] = all;
        all += counts[i];
    }
    std::vector<shared::Use> uses(static_cast<size_t>(all) / sizeof(shared::Use));
    if (all > 0)
        check(table.Allgatherv(mine.data(), bytes, byte, uses.data(), counts.data(), at.data(), byte, world),
              "MPI_Allgatherv");
    if (!error.empty()) fail("{}", error);
    std::vector<shared::Member> members;
    for (size_t i = 0; i < counts.size(); ++i)
        for (size_t k = 0; k < static_cast<size_t>(counts[i]) / sizeof(shared::Use); ++k)
            members.push_back({played_by(PhysicalRank(static_cast<int>(i))),
                               uses[static_cast<size_t>(at[i]) / sizeof(shared::Use) + k]});
    return std::make_unique<shared::Roster>(rank, members);
}

wire::Bytes own_uses() {
    const std::vector<shared::Use> mine = shared::find_uses(process_limits().descriptors);
    const auto* at = reinterpret_cast<const std::byte*>(mine.data());
    return {at, at + mine.size() * sizeof(shared::Use)};
}

std::unique_ptr<shared::Roster> roster_of(const std::vector<wire::Bytes>& all, Rank rank) {
    std::vector<shared::Member> members;
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].size() % sizeof(shared::Use) != 0)
            fail("what rank {} says that it shares with others is damaged", i);
        for (size_t at = 0; at < all[i].size(); at += sizeof(shared::Use)) {
            shared::Use use;
            std::memcpy(&use, all[i].data() + at, sizeof use);
            members.push_back({Rank(static_cast<uint32_t>(i)), use});
        }
    }
    return std::make_unique<shared::Roster>(rank, members);
}

shared::Peers peers(uint64_t private_world, Rank rank, const std::string& node) {
    mpi::RealComm world{private_world};
    mpi::RealDatatype byte = real_Datatype(MPI_BYTE);
    shared::Peers peers;
    peers.rank = rank;
    peers.node = node;
    // All texts have one size, so that none needs to be asked for before.
    peers.send = [world, byte](Rank to, const std::string& text) {
        std::vector<char> bytes(kMostText, 0);
        text.copy(bytes.data(), kMostText - 1);
        check(binding_table().Send(bytes.data(), kMostText, byte, physical_rank(to).number(), kTag, world),
              "MPI_Send");
    };
    peers.receive = [world, byte](Rank from) {
        std::vector<char> bytes(kMostText + 1, 0);
        check(binding_table().Recv(bytes.data(), kMostText, byte, physical_rank(from).number(), kTag, world,
                                   nullptr),
              "MPI_Recv");
        return std::string(bytes.data());
    };
    return peers;
}

}  // namespace fermata::lower
