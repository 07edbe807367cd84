// Fetcher brings what this node shall have from other nodes, or from its own other medium, into its memory or
// its local directory, in a thread of its own and by several streams. A file has its name only once it is
// whole; who has an image of this node's memory has all that belongs to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/background.h"
#include "files/folder.h"
#include "image/image.h"
#include "level/throttle.h"
#include "transfer/client.h"
#include "wire/message.h"

namespace fermata::transfer {

class Fetcher {
  public:
    Fetcher() = default;
    ~Fetcher() { stop(); }  // gives up what is not done
    Fetcher(const Fetcher&) = delete;
    Fetcher& operator=(const Fetcher&) = delete;

    struct Order {
        uint32_t number = 0;
        uint64_t job = 0;
        files::Folder folder;  // the job's directory on this node
        Medium into = Medium::memory;
        wire::Key key{};
        image::KeyPointer image_key;
        bool thorough = false;
        int64_t silent_ms = 30'000;
        std::vector<wire::Errand> errands;  // of this node
        bool named = true;                  // these say which images they mean; else whatever is there comes
    };
    struct Result {
        uint32_t number = 0;
        uint64_t bytes = 0;
        std::vector<wire::Failure> failures;
    };
    bool busy() const { return work_.busy(); }
    // Begins to fetch; not while it is busy.
    void start(Order order, uint64_t bytes_per_second);
    // Limits the bandwidth; 0: no limit. Also while it works.
    void limit(uint64_t bytes_per_second) { throttle_.limit(bytes_per_second); }
    void stop();
    // Bytes that will still take room here.
    uint64_t coming() const { return coming_; }

    // poll() finds it readable when take() may have something.
    int descriptor() const { return work_.descriptor(); }
    std::optional<Result> take() { return work_.take(); }

  private:
    struct Piece;
    struct Part;
    Result work();
    void run(const wire::Errand& errand);
    void bring(Client& client, const wire::Errand& errand, Generation generation, bool wanted);
    std::vector<Piece> missing(Client& client, Generation generation, const files::Folder& to,
                               const std::vector<File>& files);
    static Fd new_file(const Piece& piece);
    void bring_all(Client& client, const wire::Errand& errand, Generation generation,
                   std::vector<Piece>& pieces);
    void bring_parts(Client& client, Generation generation, const std::vector<Part>& parts,
                     std::atomic<size_t>& next);
    void check(const wire::Errand& errand) const;
    Client connect(const wire::Errand& errand);

    Order order_;
    level::Throttle throttle_;
    std::atomic<uint64_t> bytes_{0}, coming_{0};
    std::atomic<bool> given_up_{false};
    std::atomic<bool> failed_{false};  // of the streams of one errand
    Background<Result> work_;          // the last: it ends first
};

}  // namespace fermata::transfer
