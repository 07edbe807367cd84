// Arrivals are images of ranks of other nodes that come to this one, one after the other, to become copies of
// these ranks.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "files/folder.h"
#include "transfer/fetcher.h"
#include "wire/message.h"

namespace fermata::noded {

class Arrivals {
  public:
    struct Site {
        uint64_t job = 0;
        std::string node;  // this one
        wire::Key key{};
        image::KeyPointer image_key;
        int64_t silent_ms = 30'000;
    };
    // `folder`: the job's directory in the memory of this node.
    void expect(const wire::StartCopy& order, const Site& site, const files::Folder& folder);
    struct Arrived {
        wire::StartCopy order;
        std::string why_not;  // "" = the image is here
    };
    std::optional<Arrived> take();
    void add_to(std::vector<pollfd>& fds) const { fds.push_back({fetcher_.descriptor(), POLLIN, 0}); }

  private:
    void begin();
    struct Wanted {
        wire::StartCopy order;
        transfer::Fetcher::Order errand;
    };
    std::deque<Wanted> wanted_;  // the first one is under way
    transfer::Fetcher fetcher_;
};

}  // namespace fermata::noded
