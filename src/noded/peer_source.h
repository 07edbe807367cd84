// PeerSource reads what the members of a group have of a generation: this node's own from its memory, that of
// others over connections between node daemons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "erasure/source.h"
#include "transfer/client.h"
#include "wire/message.h"

namespace fermata::noded {

// Facts about the node daemon, for those who speak with others in its name.
struct OwnNode {
    uint64_t job = 0;
    std::string name;
    files::Folder folder;  // the job's directory in the memory of this node
    wire::Key key{};
    transfer::Patience patience;
};

class PeerSource : public erasure::Source {
  public:
    PeerSource(const OwnNode& own, const wire::PeerGroup& group);

    // A peer that cannot be reached is not tried again.
    void read(erasure::Member member, const std::string& file, uint64_t offset, void* to,
              size_t bytes) override;
    void expect(erasure::Member member, const std::string& file, uint64_t offset, size_t bytes) override;
    bool reachable(erasure::Member member) const { return dead_.count(member) == 0; }
    // All of a file, which has at most `most` bytes.
    std::vector<std::byte> whole(erasure::Member member, const std::string& file, uint64_t most);

  private:
    transfer::Client& client(erasure::Member member);
    void drop(erasure::Member member);
    template <class Work>
    auto ask(erasure::Member member, Work work);

    const OwnNode& own_;
    const wire::PeerGroup& group_;
    erasure::Folders here_;
    std::map<erasure::Member, std::unique_ptr<transfer::Client>> clients_;
    // Asked for, and not taken; nothing of a member without a client.
    std::map<erasure::Member, std::deque<transfer::Client::Part>> asked_;
    std::map<erasure::Member, std::string> dead_;  // why
};

}  // namespace fermata::noded
