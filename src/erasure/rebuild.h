// Rebuild gives back what a member of a group has lost, out of what the others still have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "erasure/code.h"
#include "erasure/encode.h"
#include "erasure/parity_file.h"

namespace fermata::erasure {

class Rebuild {
  public:
    // Both have to outlive this.
    Rebuild(const Group& group, Source& source);

    // Looks at the finished file, by its folder and the name that it has until then; throws when it is not
    // what it should be.
    using Check = std::function<void(const files::Folder&, const std::string&)>;
    // Makes a file of a member anew in `to`, the directory of the generation on some node: whole and compared
    // with the checksums of all its pieces, or not there. Pieces that the member itself still has are taken.
    // Throws Error when more is lost than the group bears.
    void file(Member member, size_t file, const files::Folder& to, const Check& check = {},
              const Between& between = {});

    // Things that were found missing or damaged, a line each.
    const std::set<std::string>& losses() const { return losses_; }

  private:
    void piece(Member member, uint64_t piece, uint8_t* to);
    bool fetch(Stripe stripe, Position position, uint64_t piece, uint8_t* to);
    bool fetch_data(Member member, uint64_t piece, uint8_t* to);
    bool fetch_parity(Member member, uint32_t row, uint64_t piece, uint8_t* to);
    const std::optional<ParityHead>& head_of(Member member);
    const Combination& combination(const std::vector<Position>& present, Position wanted);
    void note(Member member, const std::string& what);

    const Group& group_;
    Source& source_;
    Code code_;
    std::unique_ptr<uint8_t[]> room_;
    std::map<Member, std::optional<ParityHead>> heads_;
    std::set<std::pair<Member, std::string>> unreadable_;
    std::map<std::pair<std::vector<Position>, Position>, Combination> combinations_;
    std::set<std::string> losses_;
};

}  // namespace fermata::erasure
