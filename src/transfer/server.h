// Server lets node daemons of the job read the files of generations that are in the memory of this node, or
// in its local directory: a port of its own, a thread that waits there, and one for each daemon that has
// proved itself. An error ends the connection, and nothing else.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include "base/fd.h"
#include "files/folder.h"
#include "transfer/stream.h"
#include "transfer/streams.h"
#include "tree/guests.h"

namespace fermata::transfer {

class Server {
  public:
    // `folder`: the job's directory there (level::Memory). `streams`: that begin on this node; null: none.
    Server(files::Folder folder, uint64_t job, const wire::Key& key, int64_t silent_ms,
           const Streams* streams = nullptr);
    ~Server();  // ends what is under way
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Where others reach it, as in FERMATA_ROOT.
    std::string addresses() const;

  private:
    struct Guest {
        std::thread thread;
        std::atomic<bool> done{false};
    };
    void wait();
    void admit(Fd socket, const wire::Handshake& shake);
    void serve(Stream stream) const;
    void answer(Stream& stream, const Question& question) const;
    void carry_stream(Stream& stream, const Question& question) const;

    const files::Folder folder_;
    const uint64_t job_;
    const int64_t silent_ms_;
    const Streams* const streams_;
    uint16_t port_ = 0;  // before guests_, whose listener sets it
    tree::Guests guests_;
    std::list<Guest> admitted_;  // of the thread that waits
    Fd stop_;                    // an eventfd
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace fermata::transfer
